// The columns of holders, alone and together.
import type { Holder, HolderGroup } from "../../api/types";
import { count, duration, gpus, memoryInGib, percent, share, UNKNOWN } from "../../format/format";
import type { Words } from "../../i18n/locale";
import { Ago } from "../../parts/Ago";
import { Status } from "../../parts/Status";
import { Link } from "../../router/Link";
import type { Column } from "../../table/columns";

export const holderKey = (row: Pick<Holder, "namespace" | "name">): string => `${row.namespace}/${row.name}`;
export const groupKey = (row: HolderGroup): string => `${row.namespace}/${row.kind}/${row.name}`;

/** Its job's page, where it is of a training job. */
export const jobPage = (row: Pick<Holder, "namespace" | "job">): string | null => (row.job ? `/jobs/${[row.namespace, ...row.job.split("/")].map(encodeURIComponent).join("/")}` : null);

const ownerWord = (row: Pick<Holder, "ownerKind" | "owner">, t: Words["t"]): string => (row.owner ? `${row.ownerKind}/${row.owner}` : t("holders.nobody"));

/** Seen at work is not the same as not known. */
export const idleWord = (seconds: number | null, t: Words["t"]): string => (seconds === 0 ? t("holders.busy") : duration(seconds));

/** How long all its cards have done nothing; of a pod that uses some of them, how many it does not. */
export const idleOf = (h: Pick<Holder, "idleSeconds" | "gpusIdle" | "gpus">, t: Words["t"]): string =>
  h.idleSeconds === 0 && h.gpusIdle > 0 ? t("holders.idlePart", { idle: gpus(h.gpusIdle), gpus: gpus(h.gpus) }) : idleWord(h.idleSeconds, t);

export const part = (of: number | null, whole: number | null): number | null => {
  const percentOf = share(of, whole);
  return percentOf === null ? null : percentOf / 100;
};

export function holderColumns(t: Words["t"]): Column<Holder>[] {
  return [
    { key: "namespace", head: t("col.namespace"), width: 100, mono: true, title: (h) => h.namespace, cell: (h) => h.namespace },
    { key: "name", head: t("holders.pod"), width: 190, mono: true, fixed: true, title: (h) => h.name, cell: (h) => h.name },
    { key: "owner", head: t("holders.owner"), width: 170, mono: true, title: (h) => ownerWord(h, t), cell: (h) => <Owner row={h} word={ownerWord(h, t)} /> },
    { key: "user", head: t("col.user"), width: 84, title: (h) => h.user, cell: (h) => h.user || UNKNOWN },
    { key: "node", head: t("col.node"), width: 100, mono: true, title: (h) => h.node, cell: (h) => <Link to={`/nodes/${encodeURIComponent(h.node)}`}>{h.node}</Link> },
    { key: "gpus", head: "GPUs", width: 56, number: true, cell: (h) => gpus(h.gpus) },
    { key: "gpuMemoryAllocatedMiB", head: t("col.memoryAllocated"), unit: "GiB", width: 100, number: true, cell: (h) => memoryInGib(h.gpuMemoryAllocatedMiB) },
    { key: "gpuMemoryUsedMiB", head: t("col.memoryUsed"), unit: "GiB", width: 88, number: true, bar: (h) => part(h.gpuMemoryUsedMiB, h.gpuMemoryUsedOfMiB), cell: (h) => memoryInGib(h.gpuMemoryUsedMiB) },
    { key: "gpuUtilPercent", head: t("col.utilization"), width: 84, number: true, bar: (h) => part(h.gpuUtilPercent, 100), cell: (h) => percent(h.gpuUtilPercent) },
    { key: "heldSince", head: t("node.since"), width: 76, cell: (h) => <Ago at={h.heldSince} /> },
    { key: "idleSeconds", head: t("map.by.idle"), width: 76, number: true, cell: (h) => idleWord(h.idleSeconds, t) },
    { key: "gpusIdle", head: t("holders.idle"), width: 90, number: true, optional: true, bar: (h) => part(h.gpusIdle, h.gpus), cell: (h) => gpus(h.gpusIdle) },
    { key: "status", head: t("col.status"), width: 118, cell: (h) => <Status word={h.status} /> },
    { key: "gpuIndexes", head: t("holders.cards"), width: 90, optional: true, unsortable: true, cell: (h) => h.gpuIndexes.join(", ") || UNKNOWN },
    { key: "quotaPath", head: t("col.quotaPath"), width: 140, mono: true, optional: true, cell: (h) => h.quotaPath || UNKNOWN },
  ];
}

function Owner({ row, word }: { row: Holder; word: string }) {
  const page = jobPage(row);
  return page ? <Link to={page}>{word}</Link> : word;
}

export function groupColumns(by: string, t: Words["t"]): Column<HolderGroup>[] {
  const named = (g: HolderGroup) => (g.kind ? `${g.namespace}/${g.kind}/${g.name}` : g.name || t("holders.unknown"));
  return [
    { key: "name", head: t(`holders.by.${by as "owner"}`), width: 220, mono: true, fixed: true, title: named, cell: named },
    { key: "pods", head: t("col.pods"), width: 70, number: true, cell: (g) => count(g.pods) },
    { key: "gpus", head: "GPUs", width: 80, number: true, cell: (g) => gpus(g.gpus) },
    { key: "gpusIdle", head: t("holders.idle"), width: 90, number: true, bar: (g) => part(g.gpusIdle, g.gpus), cell: (g) => gpus(g.gpusIdle) },
    { key: "gpuHoursIdle", head: t("holders.hoursIdle"), width: 140, number: true, cell: (g) => gpus(g.gpuHoursIdle) },
    { key: "gpuMemoryAllocatedMiB", head: t("col.memoryAllocated"), unit: "GiB", width: 110, number: true, cell: (g) => memoryInGib(g.gpuMemoryAllocatedMiB) },
    { key: "gpuMemoryUsedMiB", head: t("col.memoryUsed"), unit: "GiB", width: 110, number: true, bar: (g) => part(g.gpuMemoryUsedMiB, g.gpuMemoryUsedOfMiB), cell: (g) => memoryInGib(g.gpuMemoryUsedMiB) },
    { key: "heldSince", head: t("node.since"), width: 90, cell: (g) => <Ago at={g.heldSince} /> },
  ];
}

/** What the filters of the server call a user or leaf that is not known. */
const NOBODY = "-";

/** The query that shows the pods of a group. */
export function within(by: string, row: HolderGroup): string {
  const query = new URLSearchParams(by === "owner" ? { namespace: row.namespace, ...(row.kind === "Pod" ? { owner: `Pod/${row.name}` } : { kind: row.kind, owner: row.name }) } : { [by]: row.name || NOBODY });
  return `?${query}`;
}
