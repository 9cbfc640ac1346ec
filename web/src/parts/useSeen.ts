// Has this element come into sight? Charts below the fold ask nothing until a person scrolls there.
import { useEffect, useRef, useState } from "react";

const AHEAD_PX = 300;

export function useSeen(): [React.RefObject<HTMLDivElement | null>, boolean] {
  const ref = useRef<HTMLDivElement>(null);
  const [seen, setSeen] = useState(false);
  useEffect(() => {
    const element = ref.current;
    if (!element || seen) return;
    const watcher = new IntersectionObserver((entries) => entries.some((e) => e.isIntersecting) && setSeen(true), { rootMargin: `${AHEAD_PX}px` });
    watcher.observe(element);
    return () => watcher.disconnect();
  }, [seen]);
  return [ref, seen];
}
