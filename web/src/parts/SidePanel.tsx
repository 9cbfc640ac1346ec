// Details beside the list, not over it: the rows stay in reach of `j` and `k`. Esc closes and focus returns to the row.
import { type ReactNode, useEffect, useEffectEvent, useId } from "react";
import { useWords } from "../i18n/locale";
import { Link } from "../router/Link";
import { Icon } from "./Icon";

export function SidePanel({ title, page, onClose, children }: { title: ReactNode; page?: string; onClose: () => void; children: ReactNode }) {
  const { t } = useWords();
  const id = useId();
  // The row that the panel belongs to takes the focus back, wherever it has gone in between.
  const leave = () => {
    document.querySelector<HTMLElement>('main tr[aria-selected="true"]')?.focus({ preventScroll: true });
    onClose();
  };
  const close = useEffectEvent(leave);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key === "Escape" && !event.defaultPrevented) close();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
  return (
    <aside className="side" aria-labelledby={id} data-testid="side-panel">
      <div className="side-head">
        <h2 id={id} className="clip">
          {title}
        </h2>
        {page && (
          <Link to={page} className="tool" title={t("action.fullPage")} aria-label={t("action.fullPage")} data-testid="action-full-page">
            <Icon name="open" />
          </Link>
        )}
        <button type="button" className="tool" aria-label={t("action.close")} title={`${t("action.close")} (Esc)`} onClick={leave}>
          <Icon name="close" />
        </button>
      </div>
      <div className="side-body">{children}</div>
    </aside>
  );
}
