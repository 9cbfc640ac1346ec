// A value after it has stood still for a moment: what is typed is asked about once.
import { useEffect, useState } from "react";

const STILL_MS = 250;

export function useLate<T>(value: T): T {
  const [late, setLate] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setLate(value), STILL_MS);
    return () => clearTimeout(timer);
  }, [value]);
  return late;
}
