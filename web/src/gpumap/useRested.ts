// Has the pointer, or the scroll, come to rest here? What sweeps over the map asks nothing.
import { useEffect, useState } from "react";

const REST_MS = 120;

/** True once `what` has stayed the same for a moment. */
export function useRested(what: string): boolean {
  const [rested, setRested] = useState("");
  useEffect(() => {
    const timer = setTimeout(() => setRested(what), REST_MS);
    return () => clearTimeout(timer);
  }, [what]);
  return rested === what;
}
