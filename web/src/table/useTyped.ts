// What is being typed into a choice, after a pause: the question for names beyond those the server sends along.
import { useEffect, useMemo, useState } from "react";

const TYPING_MS = 250;
const NAMES = "50";

/** `[parameters to ask with, whether to ask, tell what is typed]`. */
export function useTyped(): [URLSearchParams, boolean, (typed: string) => void] {
  const [typed, setTyped] = useState("");
  const [asked, setAsked] = useState("");
  useEffect(() => {
    const timer = setTimeout(() => setAsked(typed), TYPING_MS);
    return () => clearTimeout(timer);
  }, [typed]);
  const params = useMemo(() => new URLSearchParams({ q: asked, size: NAMES }), [asked]);
  return [params, asked !== "", setTyped];
}
