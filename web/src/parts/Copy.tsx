// Takes a text along. Where the clipboard may not be written, the text is selected for the person's own hand.
import { useEffect, useRef, useState } from "react";
import { useWords } from "../i18n/locale";
import { Icon } from "./Icon";

const SAID_MS = 1600;

/** A button that copies `text`; it says so for a moment. */
export function Copy({ text, label }: { text: string; label?: string }) {
  const { t } = useWords();
  const [done, setDone] = useState(false);
  const box = useRef<HTMLSpanElement>(null);
  useEffect(() => {
    if (!done) return undefined;
    const timer = setTimeout(() => setDone(false), SAID_MS);
    return () => clearTimeout(timer);
  }, [done]);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setDone(true);
    } catch {
      const words = box.current?.previousElementSibling ?? null;
      if (words) getSelection()?.selectAllChildren(words);
    }
  };
  const name = done ? t("copy.done") : (label ?? t("copy.text"));
  return (
    <span ref={box} className="copy">
      <button type="button" className="tool" aria-label={name} title={name} data-testid="action-copy" onClick={() => void copy()}>
        <Icon name={done ? "check" : "copy"} />
      </button>
      <span className="visually-hidden" role="status">
        {done ? t("copy.done") : ""}
      </span>
    </span>
  );
}

/** A command in one line, as it is typed, with its Copy. */
export function Command({ text }: { text: string }) {
  const { t } = useWords();
  return (
    <span className="command">
      <code>{text}</code>
      <Copy text={text} label={t("copy.command")} />
    </span>
  );
}
