// The columns of usage: what one user, namespace, leaf, job or model held in a period, and what it cost.
import type { UsageRow } from "../../api/types";
import { count, heldHours, money, percent } from "../../format/format";
import type { Words } from "../../i18n/locale";
import type { MessageKey } from "../../i18n/translate";
import { Link } from "../../router/Link";
import type { Column } from "../../table/columns";
import { usageName } from "./words";

export const BY = ["user", "namespace", "leaf", "job", "model"] as const;
export type UsageBy = (typeof BY)[number];
export const BY_WORDS: Readonly<Record<UsageBy, MessageKey>> = { user: "col.user", namespace: "col.namespace", leaf: "col.quotaPath", job: "usage.job", model: "usage.model" };

export const usageKey = (row: Pick<UsageRow, "uid" | "namespace" | "type" | "name">): string => row.uid || [row.namespace, row.type, row.name].join("/");

/** The page about a row; none: "". */
function pageOf(row: UsageRow, by: UsageBy): string {
  const name = encodeURIComponent(row.name);
  if (row.name === "") return "";
  if (by === "job") return `/jobs/${[row.namespace, row.type, row.name].map(encodeURIComponent).join("/")}?tab=cost`;
  if (by === "leaf") return `/quota?path=${name}`;
  if (by === "namespace") return `/jobs?job_namespace=${name}`;
  if (by === "model") return `/nodes?model=${name}`;
  return `/jobs?user=${name}`;
}

function NameCell({ row, by, words }: { row: UsageRow; by: UsageBy; words: Pick<Words, "t"> }) {
  const to = pageOf(row, by);
  const name = usageName(row, by, words.t);
  return to ? <Link to={to}>{name}</Link> : <span className="dim">{name}</span>;
}

/** `currency`: "" without prices; then there are no columns of money. */
export function usageColumns(words: Pick<Words, "t">, by: UsageBy, currency: string): Column<UsageRow>[] {
  const { t } = words;
  const amount = { number: true } as const;
  const paid: Column<UsageRow>[] = [
    { ...amount, key: "cost", head: t("usage.cost"), unit: currency, width: 104, cell: (row) => money(row.cost) },
    { ...amount, key: "listCost", head: t("usage.listCost"), unit: currency, width: 104, cell: (row) => money(row.listCost) },
    { ...amount, key: "savedPercent", head: t("usage.saved"), width: 76, optional: true, cell: (row) => percent(row.savedPercent) },
    { ...amount, key: "unpricedGpuHours", head: t("usage.unpricedHours"), width: 110, optional: true, cell: (row) => heldHours(row.unpricedGpuHours) },
  ];
  return [
    { key: "name", head: t(BY_WORDS[by]), width: 190, mono: by !== "model", fixed: true, title: (row) => usageName(row, by, t), cell: (row) => <NameCell row={row} by={by} words={words} /> },
    ...(by === "job" ? [{ key: "type", head: t("col.jobType"), width: 100, mono: true, cell: (row: UsageRow) => row.type }] : []),
    { ...amount, key: "gpuHours", head: t("usage.gpuHours"), width: 92, cell: (row) => heldHours(row.gpuHours) },
    { ...amount, key: "gpuMemoryGibHours", head: t("usage.gpuMemoryHours"), unit: "GiB·h", width: 108, cell: (row) => heldHours(row.gpuMemoryGibHours) },
    { ...amount, key: "coreHours", head: t("usage.coreHours"), width: 92, cell: (row) => heldHours(row.coreHours) },
    { ...amount, key: "memoryGibHours", head: t("usage.memoryHours"), unit: "GiB·h", width: 100, cell: (row) => heldHours(row.memoryGibHours) },
    { ...amount, key: "idlePercent", head: t("usage.idleShare"), width: 84, barTone: "amber", bar: (row) => (row.idlePercent === null ? null : row.idlePercent / 100), cell: (row) => percent(row.idlePercent) },
    { ...amount, key: "unknownPercent", head: t("usage.unknownShare"), width: 84, cell: (row) => percent(row.unknownPercent) },
    { ...amount, key: "pods", head: t("usage.podCount"), width: 66, cell: (row) => count(row.pods) },
    ...(currency ? paid : []),
  ];
}
