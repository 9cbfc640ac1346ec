// The columns of the data list. A claim's source is its volume, a data set's what it mounts.
import type { DataSetRow } from "../../api/types";
import { count, memory, percent, UNKNOWN } from "../../format/format";
import { shown } from "../../format/shown";
import type { Words } from "../../i18n/locale";
import { Ago } from "../../parts/Ago";
import { Status } from "../../parts/Status";
import type { Column } from "../../table/columns";

const BYTES_PER_MIB = 1024 * 1024;

export const datasetKey = (row: Pick<DataSetRow, "namespace" | "kind" | "name">): string => [row.namespace, row.kind, row.name].join("/");

export const isDataSet = (row: Pick<DataSetRow, "kind">): boolean => row.kind === "Dataset";

export const bytes = (n: number | null): string => memory(n === null ? null : n / BYTES_PER_MIB);

/** `Yes`, `No`, or the data sets that cache a claim. */
export function acceleratedWord(row: DataSetRow, t: Words["t"]): string {
  if (!row.accelerated) return t("datasets.no");
  return row.acceleratedBy.length > 0 ? `${t("datasets.yes")} · ${row.acceleratedBy.join(", ")}` : t("datasets.yes");
}

/** The first job or pod that mounts it, and how many more. */
export function usersWord(row: Pick<DataSetRow, "users" | "usedBy">, t: Words["t"]): string {
  const [first] = row.usedBy;
  if (row.users === null || first === undefined) return UNKNOWN;
  return row.users > 1 ? t("datasets.usersMore", { name: first, more: row.users - 1 }) : first;
}

export const phaseSuffix = (row: DataSetRow): string => (row.status === "Ready" || row.phase === "" ? "" : ` · ${row.phase}`);

export function datasetColumns(words: Pick<Words, "t">): Column<DataSetRow>[] {
  const { t } = words;
  return [
    { key: "namespace", head: t("col.namespace"), width: 92, mono: true, title: (d) => d.namespace, cell: (d) => d.namespace },
    { key: "name", head: t("datasets.name"), width: 150, mono: true, fixed: true, title: (d) => d.name, cell: (d) => d.name },
    { key: "kind", head: t("datasets.kind"), width: 84, cell: (d) => t(isDataSet(d) ? "datasets.dataset" : "datasets.claim") },
    { key: "source", head: t("datasets.source"), width: 180, mono: true, unsortable: true, title: (d) => d.source.join(", "), cell: (d) => shown(d.source.join(", ")) || UNKNOWN },
    { key: "accelerated", head: t("datasets.accelerated"), width: 130, title: (d) => acceleratedWord(d, t), cell: (d) => acceleratedWord(d, t) },
    { key: "status", head: t("col.status"), width: 150, title: (d) => d.message || d.phase, cell: (d) => <Status word={d.status} suffix={phaseSuffix(d)} /> },
    { key: "cachedPercent", head: t("datasets.cached"), width: 84, number: true, cell: (d) => percent(d.cachedPercent) },
    { key: "sizeBytes", head: t("datasets.size"), width: 90, number: true, cell: (d) => bytes(d.sizeBytes) },
    { key: "files", head: t("datasets.files"), width: 76, number: true, cell: (d) => count(d.files) },
    { key: "runtime", head: t("datasets.runtime"), width: 150, title: (d) => d.runtime, cell: (d) => d.runtime || UNKNOWN },
    { key: "users", head: t("datasets.usedBy"), width: 130, title: (d) => d.usedBy.join(", "), cell: (d) => usersWord(d, t) },
    { key: "createdAt", head: t("col.created"), width: 70, cell: (d) => <Ago at={d.createdAt} /> },
  ];
}
