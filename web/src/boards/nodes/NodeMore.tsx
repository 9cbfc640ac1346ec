// What else is known of a node: what happened to it, its conditions, taints and labels.
import type { NodeDetail } from "../../api/types";
import { shown } from "../../format/shown";
import { useWords } from "../../i18n/locale";
import { Ago } from "../../parts/Ago";
import { EventList } from "../../parts/EventList";
import { Empty } from "../../parts/States";
import type { Column } from "../../table/columns";
import { DataTable } from "../../table/DataTable";
import { CsvHead } from "../../table/RowsCsv";

/** "No warnings" beside a broken card, or about a node that is silent or not ready, would be read as "nothing is wrong". */
export const isInTrouble = ({ node, gpus }: Pick<NodeDetail, "node" | "gpus">): boolean => node.status !== "Ready" || gpus.some((gpu) => gpu.health === "Unhealthy");

export function NodeEvents({ detail, wide }: { detail: NodeDetail; wide: boolean }) {
  const { t } = useWords();
  if (detail.events.length === 0 && (!wide || isInTrouble(detail))) return null;
  return (
    <section className="section" data-testid="node-events">
      <h2>{t("node.events")}</h2>
      {detail.events.length > 0 ? (
        <EventList events={detail.events} />
      ) : (
        <div className="nested">
          <Empty why={t("node.noEvents")} />
        </div>
      )}
    </section>
  );
}

export function Conditions({ detail }: { detail: NodeDetail }) {
  const { t } = useWords();
  if (detail.conditions.length === 0) return null;
  const columns: Column<NodeDetail["conditions"][number]>[] = [
    { key: "type", head: t("node.condition"), width: 140, cell: (c) => c.type },
    { key: "status", head: t("col.status"), width: 80, cell: (c) => c.status },
    { key: "message", head: t("node.message"), width: 260, cell: (c) => <span title={shown(c.message)}>{shown([c.reason, c.message].filter(Boolean).join(": "))}</span> },
    { key: "at", head: t("node.since"), width: 84, cell: (c) => <Ago at={c.at} /> },
  ];
  return (
    <section className="section">
      <CsvHead title={t("node.conditions")} name="node-conditions" rows={detail.conditions} />
      <div className="nested">
        <DataTable name="node-conditions" caption={t("node.conditions")} columns={columns} rows={detail.conditions} rowKey={(c) => c.type} walkable />
      </div>
    </section>
  );
}

export function Labels({ detail }: { detail: NodeDetail }) {
  const { t } = useWords();
  return (
    <>
      {detail.taints.length > 0 && (
        <section className="section">
          <h2>{t("node.taints")}</h2>
          <div className="labels mono">
            {detail.taints.map((taint) => (
              <span key={`${taint.key} ${taint.effect}`}>{shown(`${taint.key}${taint.value ? `=${taint.value}` : ""}:${taint.effect}`)}</span>
            ))}
          </div>
        </section>
      )}
      <section className="section">
        <h2>{t("node.labels")}</h2>
        <div className="labels mono">
          {Object.entries(detail.labels).map(([key, value]) => (
            <span key={key}>{shown(`${key}=${value}`)}</span>
          ))}
        </div>
      </section>
    </>
  );
}
