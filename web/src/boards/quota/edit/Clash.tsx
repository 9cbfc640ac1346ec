// Another administrator wrote the tree meanwhile: what was, what I typed, and what is now.
import { useWords } from "../../../i18n/locale";
import type { Column } from "../../../table/columns";
import { DataTable } from "../../../table/DataTable";
import type { ThreeWay } from "./draft";

const MAX_ROWS = 10;

export function Clash({ rows, onTakeOver, onGiveUp }: { rows: readonly ThreeWay[]; onTakeOver: () => void; onGiveUp: () => void }) {
  const { t } = useWords();
  const plain = { unsortable: true, mono: true } as const;
  const columns: Column<ThreeWay>[] = [
    { ...plain, key: "node", head: t("col.name"), width: 150, cell: (row) => row.node },
    { ...plain, key: "cell", head: t("tree.cell"), width: 130, cell: (row) => row.cell },
    { ...plain, key: "base", head: t("tree.base"), width: 130, cell: (row) => row.base || "–" },
    { ...plain, key: "mine", head: t("tree.mine"), width: 130, cell: (row) => row.mine || "–" },
    { ...plain, key: "theirs", head: t("tree.theirs"), width: 130, cell: (row) => row.theirs || "–" },
    { key: "clash", unsortable: true, head: t("tree.both"), width: 110, cell: (row) => (row.clash ? <span className="flag broken">{t("tree.clash")}</span> : "") },
  ];
  return (
    <div className="banner" role="alert" data-testid="tree-clash">
      <div>
        <b>{t("tree.moved")}</b>
        <DataTable name="tree-clash" caption={t("tree.moved")} columns={columns} rows={rows} rowKey={(row) => `${row.node} ${row.cell}`} maxRows={MAX_ROWS} density="compact" />
        <p className="write-acts">
          <button type="button" className="toggle" onClick={onTakeOver} data-testid="action-take-over">
            {t("tree.takeOver")}
          </button>
          <button type="button" className="link" onClick={onGiveUp}>
            {t("tree.giveUp")}
          </button>
        </p>
      </div>
    </div>
  );
}
