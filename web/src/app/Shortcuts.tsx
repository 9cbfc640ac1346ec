// The list of keys, behind `?`.
import { useWords } from "../i18n/locale";
import { Icon } from "../parts/Icon";
import { useDialog } from "../parts/useDialog";
import { BOARDS } from "./boards";

/** Its rows are in the document only while it is open: every page would carry them. */
export function Shortcuts({ open, onClose }: { open: boolean; onClose: () => void }) {
  const { t } = useWords();
  const dialog = useDialog(open, onClose);
  return (
    <dialog className="sheet" ref={dialog} aria-labelledby="keys-title">
      <header>
        <h2 id="keys-title">{t("keys.title")}</h2>
        <button type="button" className="tool" onClick={onClose} aria-label={t("action.close")}>
          <Icon name="close" />
        </button>
      </header>
      {open && <Keys />}
    </dialog>
  );
}

function Keys() {
  const { t } = useWords();
  const keys: readonly (readonly [readonly string[], string])[] = [
    [["/"], t("keys.search")],
    [["Ctrl K"], t("keys.search")],
    ...BOARDS.map((board) => [["g", board.key], t(board.title)] as const),
    [["j", "k"], t("keys.rows")],
    [["Enter"], t("keys.open")],
    [["t"], t("keys.time")],
    [["Esc"], t("keys.back")],
    [["← ↑ ↓ →"], t("keys.map")],
    [["?"], t("keys.title")],
  ];
  return (
    <dl className="facts">
      {keys.map(([press, meaning]) => (
        <div key={press.join(" ")} style={{ display: "contents" }}>
          <dt>
            {press.map((key) => (
              <kbd key={key}>{key}</kbd>
            ))}
          </dt>
          <dd>{meaning}</dd>
        </div>
      ))}
    </dl>
  );
}
