// What a replay found: each leaf as it was, replayed, and as asked; GPUs that no pod held; and how far the replay is from the past.
import { useMemo } from "react";
import type { QuotaReplay } from "../../../api/types";
import { count, duration, heldHours, money } from "../../../format/format";
import { useWords, type Words } from "../../../i18n/locale";
import type { Column } from "../../../table/columns";
import { DataTable } from "../../../table/DataTable";
import { RowsCsv } from "../../../table/RowsCsv";
import { CAUSE_WORDS, type FreeRow, freeRows, type ReplayRow, replayRows, WHAT_WORDS } from "./rows";

const MAX_ROWS = 15;
const HOUR_SECONDS = 3600;

export function ReplayTables({ found }: { found: QuotaReplay }) {
  const { t } = useWords();
  const rows = useMemo(() => replayRows(found), [found]);
  const free = useMemo(() => freeRows(found), [found]);
  const columns = useMemo(() => replayColumns(t, found.currency), [t, found.currency]);
  return (
    <>
      <div className="csv-head">
        <h3>{t("quota.leavesEnd")}</h3>
        <RowsCsv name="replay" rows={rows} />
      </div>
      <DataTable name="replay" caption={t("panel.replay")} columns={columns} rows={rows} rowKey={(row) => row.key} maxRows={MAX_ROWS} walkable density="compact" />
      <h3>{t("replay.free")}</h3>
      <DataTable name="replay-free" caption={t("replay.free")} columns={freeColumns(t, found.currency)} rows={free} rowKey={(row) => row.what} maxRows={free.length} density="compact" />
      <Distance found={found} />
    </>
  );
}

function Distance({ found }: { found: QuotaReplay }) {
  const { t } = useWords();
  const { replayed, happened, both, withinTolerance, toleranceSeconds, differences } = found.fidelity;
  return (
    <div data-testid="replay-distance">
      <p>{t("replay.near", { replayed, happened, both, within: withinTolerance, seconds: toleranceSeconds })}</p>
      <ul className="faults">
        {differences.map(({ cause, pods, example }) => {
          const word = CAUSE_WORDS[cause];
          return <li key={cause}>{t("replay.differences", { n: pods, cause: word ? t(word) : cause, example })}</li>;
        })}
      </ul>
    </div>
  );
}

/** `currency`: "" without prices; then there is no column of money. */
export function replayColumns(t: Words["t"], currency: string): Column<ReplayRow>[] {
  const number = { number: true, unsortable: true } as const;
  return [
    { key: "leaf", head: t("col.quotaName"), width: 150, mono: true, fixed: true, unsortable: true, title: (row) => row.leaf, cell: (row) => row.leaf || t("replay.all") },
    { key: "what", head: t("replay.what"), width: 150, unsortable: true, cell: (row) => t(WHAT_WORDS[row.what]) },
    { ...number, key: "pods", head: t("replay.pods"), width: 64, cell: (row) => count(row.pods) },
    { ...number, key: "waitedHours", head: t("replay.waited"), width: 84, cell: (row) => duration(row.waitedHours * HOUR_SECONDS) },
    { ...number, key: "waitedP95Seconds", head: t("replay.p95"), width: 130, cell: (row) => duration(row.waitedP95Seconds) },
    { ...number, key: "waiting", head: t("replay.waiting"), width: 104, cell: (row) => count(row.waiting) },
    { ...number, key: "evictions", head: t("replay.evictions"), width: 80, cell: (row) => count(row.evictions) },
    { ...number, key: "gpuHours", head: t("usage.gpuHours"), width: 92, cell: (row) => heldHours(row.gpuHours) },
    { ...number, key: "idleGpuHours", head: t("replay.idle"), width: 110, cell: (row) => heldHours(row.idleGpuHours) },
    { ...number, key: "lostGpuHours", head: t("replay.lost"), width: 110, cell: (row) => heldHours(row.lostGpuHours) },
    ...(currency ? [{ ...number, key: "idleCost", head: t("replay.idleCost"), unit: currency, width: 104, cell: (row: ReplayRow) => money(row.idleCost) }] : []),
  ];
}

function freeColumns(t: Words["t"], currency: string): Column<FreeRow>[] {
  const number = { number: true, unsortable: true } as const;
  return [
    { key: "what", head: t("replay.what"), width: 150, unsortable: true, cell: (row) => t(WHAT_WORDS[row.what]) },
    { ...number, key: "gpuHours", head: t("usage.gpuHours"), width: 92, cell: (row) => heldHours(row.gpuHours) },
    ...(currency ? [{ ...number, key: "cost", head: t("replay.freeCost"), unit: currency, width: 104, cell: (row: FreeRow) => money(row.cost) }] : []),
  ];
}
