// The last versions of the tree: time, user and changes; one can be looked at, and become the edit.
import { useState } from "react";
import { useTreeVersions } from "../../../api/treewrites";
import type { QuotaTreeVersion, TreeNodeOrder } from "../../../api/types";
import { exactTime, parseTime } from "../../../format/format";
import { useWords } from "../../../i18n/locale";
import { Panel } from "../../../parts/Panel";
import { Answered, Bones, Empty } from "../../../parts/States";
import type { Column } from "../../../table/columns";
import { DataTable } from "../../../table/DataTable";

const MAX_ROWS = 8;

export function Versions({ onRestore }: { onRestore: (nodes: readonly TreeNodeOrder[]) => void }) {
  const { t } = useWords();
  const asked = useTreeVersions(true);
  const [shown, setShown] = useState<QuotaTreeVersion | null>(null);
  const columns: Column<QuotaTreeVersion>[] = [
    { unsortable: true, key: "at", head: t("tree.at"), width: 160, cell: (row) => exactTime(parseTime(row.at)) },
    { unsortable: true, key: "actor", head: t("tree.actor"), width: 110, cell: (row) => row.actor || t("tree.otherClient") },
    { unsortable: true, key: "summary", head: t("tree.summary"), width: 260, cell: (row) => row.summary },
    {
      unsortable: true,
      key: "acts",
      head: t("tree.acts"),
      width: 150,
      cell: (row) => (
        <span className="write-acts">
          <button type="button" className="link" onClick={() => setShown(row)} data-testid={`version-${row.id}`}>
            {t("tree.look")}
          </button>
          <button type="button" className="link" onClick={() => onRestore(row.nodes)} data-testid={`restore-${row.id}`}>
            {t("tree.restore")}
          </button>
        </span>
      ),
    },
  ];
  return (
    <Panel slug="tree-versions" title={t("tree.versions")}>
      <Answered asked={asked} bones={<Bones lines={4} />}>
        {({ items }) => (items.length === 0 ? <Empty why={t("tree.noVersions")} /> : <DataTable name="tree-versions" caption={t("tree.versions")} columns={columns} rows={items} rowKey={(row) => String(row.id)} maxRows={MAX_ROWS} density="compact" />)}
      </Answered>
      {shown && (
        <pre className="yaml mono" data-testid="version-yaml">
          {shown.yaml}
        </pre>
      )}
    </Panel>
  );
}
