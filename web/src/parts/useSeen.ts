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

const NEAR_PX = 100;

/** Is this element in sight now? Tables out of sight leave the document; their place keeps its height.
 * A table that has the focus stays: its removal would end a walk through its rows. */
export function useInSight(): [React.RefObject<HTMLDivElement | null>, boolean] {
  const ref = useRef<HTMLDivElement>(null);
  const [inSight, setInSight] = useState(false);
  const [focused, setFocused] = useState(false);
  useEffect(() => {
    const element = ref.current;
    if (!element) return;
    const watcher = new IntersectionObserver((entries) => setInSight(entries.at(-1)?.isIntersecting ?? false), { rootMargin: `${NEAR_PX}px` });
    watcher.observe(element);
    const onFocus = () => setFocused(true);
    const onBlur = ({ relatedTarget }: FocusEvent) => setFocused(relatedTarget instanceof Node && element.contains(relatedTarget));
    element.addEventListener("focusin", onFocus);
    element.addEventListener("focusout", onBlur);
    return () => {
      watcher.disconnect();
      element.removeEventListener("focusin", onFocus);
      element.removeEventListener("focusout", onBlur);
    };
  }, []);
  return [ref, inSight || focused];
}
