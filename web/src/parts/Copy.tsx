// Copies a text. If the clipboard may not be written, a message is shown, and the text is selected for manual copying.
import { useEffect, useRef, useState } from "react";
import { shown } from "../format/shown";
import { useWords } from "../i18n/locale";
import { copied } from "./clipboard";
import { Icon } from "./Icon";

const SAID_MS = 1600;

/** A button that copies `text`; it shows for a moment whether that succeeded. */
export function Copy({ text, label }: { text: string; label?: string }) {
  const { t } = useWords();
  const [result, setResult] = useState<"copy.done" | "copy.refused" | null>(null);
  const box = useRef<HTMLSpanElement>(null);
  useEffect(() => {
    if (!result) return undefined;
    const timer = setTimeout(() => setResult(null), SAID_MS);
    return () => clearTimeout(timer);
  }, [result]);
  const copy = async () => {
    const done = box.current !== null && (await copied(text, box.current));
    const words = box.current?.previousElementSibling ?? null;
    if (!done && words) getSelection()?.selectAllChildren(words);
    setResult(done ? "copy.done" : "copy.refused");
  };
  const name = result ? t(result) : (label ?? t("copy.text"));
  return (
    <span ref={box} className="copy">
      <button type="button" className="tool" aria-label={name} title={name} data-testid="action-copy" onClick={() => void copy()}>
        <Icon name={result === null ? "copy" : result === "copy.done" ? "check" : "close"} />
      </button>
      <span className="visually-hidden" role="status">
        {result ? t(result) : ""}
      </span>
    </span>
  );
}

/** A name, a UUID, an id: as it is written, with its Copy. In a table the Copy is seen where the pointer or the focus is. */
export function Copied({ text }: { text: string }) {
  const { t } = useWords();
  return (
    <span className="copied">
      <span className="mono clip">{shown(text)}</span>
      <Copy text={text} label={t("copy.of", { text })} />
    </span>
  );
}

/** A command in one line, as it is typed, with its Copy. */
export function Command({ text }: { text: string }) {
  const { t } = useWords();
  return (
    <span className="command">
      <code>{shown(text)}</code>
      <Copy text={text} label={t("copy.command")} />
    </span>
  );
}
