// Takes a text along. Where the clipboard may not be written it says so, and the text is selected for the person's own hand.
import { useEffect, useRef, useState } from "react";
import { shown } from "../format/shown";
import { useWords } from "../i18n/locale";
import { copied } from "./clipboard";
import { Icon } from "./Icon";

const SAID_MS = 1600;

/** A button that copies `text`; it says for a moment whether that went well. */
export function Copy({ text, label }: { text: string; label?: string }) {
  const { t } = useWords();
  const [said, setSaid] = useState<"copy.done" | "copy.refused" | null>(null);
  const box = useRef<HTMLSpanElement>(null);
  useEffect(() => {
    if (!said) return undefined;
    const timer = setTimeout(() => setSaid(null), SAID_MS);
    return () => clearTimeout(timer);
  }, [said]);
  const copy = async () => {
    const done = box.current !== null && (await copied(text, box.current));
    const words = box.current?.previousElementSibling ?? null;
    if (!done && words) getSelection()?.selectAllChildren(words);
    setSaid(done ? "copy.done" : "copy.refused");
  };
  const name = said ? t(said) : (label ?? t("copy.text"));
  return (
    <span ref={box} className="copy">
      <button type="button" className="tool" aria-label={name} title={name} data-testid="action-copy" onClick={() => void copy()}>
        <Icon name={said === null ? "copy" : said === "copy.done" ? "check" : "close"} />
      </button>
      <span className="visually-hidden" role="status">
        {said ? t(said) : ""}
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
