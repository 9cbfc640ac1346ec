// Details beside the list, not over it: the rows stay in reach of `j` and `k`. Esc closes and focus returns to the row.
import { type ReactNode, useEffect, useEffectEvent, useId, useRef } from "react";
import { ObjectCommand } from "../commands/EqualCommand";
import type { CommandObject } from "../commands/objects";
import { useWords } from "../i18n/locale";
import { Link } from "../router/Link";
import { Copy } from "./Copy";
import { Icon } from "./Icon";
import { Name } from "./Name";

const STOPS = "a[href], button:not(:disabled), input, select, [tabindex='0']";
const rowOf = (): HTMLElement | null => document.querySelector('main tr[aria-selected="true"]');

/** The panel stands beside its row, and Tab goes from the one to the other although the rest of the page lies between them in the document. */
function stepOver(event: KeyboardEvent, panel: HTMLElement): void {
  const row = rowOf();
  const first = panel.querySelector<HTMLElement>(STOPS);
  if (!row || !first) return;
  const to = !event.shiftKey && document.activeElement === row ? first : event.shiftKey && document.activeElement === first ? row : null;
  if (!to) return;
  event.preventDefault();
  to.focus({ preventScroll: true });
}

interface Props {
  /** What is shown, as it is called; it can be taken along. */
  name: string;
  /** Its own page. */
  page?: string;
  /** The object whose commands print the same. */
  of?: CommandObject;
  onClose: () => void;
  children: ReactNode;
}

export function SidePanel({ name, page, of, onClose, children }: Props) {
  const { t } = useWords();
  const id = useId();
  // The row that the panel belongs to takes the focus back, wherever it has gone in between.
  const leave = () => {
    rowOf()?.focus({ preventScroll: true });
    onClose();
  };
  const panel = useRef<HTMLElement>(null);
  const close = useEffectEvent(leave);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      // A dialog over the page has the keys, and gives the focus back.
      if (event.defaultPrevented || document.querySelector("dialog[open]")) return;
      if (event.key === "Escape") close();
      else if (event.key === "Tab" && panel.current) stepOver(event, panel.current);
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
  return (
    <aside className="side" ref={panel} aria-labelledby={id} data-testid="side-panel">
      <div className="side-head">
        <h2 id={id} className="clip mono">
          <Name text={name} />
        </h2>
        {page && (
          <Link to={page} className="tool" title={t("action.fullPage")} aria-label={t("action.fullPage")} data-testid="action-full-page">
            <Icon name="open" />
          </Link>
        )}
        <Copy text={name} label={t("copy.of", { text: name })} />
        {of && <ObjectCommand of={of} />}
        <button type="button" className="tool" aria-label={t("action.close")} title={`${t("action.close")} (Esc)`} onClick={leave}>
          <Icon name="close" />
        </button>
      </div>
      <div className="side-body">{children}</div>
    </aside>
  );
}
