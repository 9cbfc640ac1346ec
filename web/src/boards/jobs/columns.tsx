// The columns of document 000's `Training Jobs`, in its order, and the optional ones after them.
import type { JobRow, Waiting } from "../../api/types";
import { duration, gpus, memory, memoryInGib, percent, share, UNKNOWN } from "../../format/format";
import type { Words } from "../../i18n/locale";
import { Ago } from "../../parts/Ago";
import { Status } from "../../parts/Status";
import { saidBeside, whyWords } from "../../parts/WhyItWaits";
import type { Column } from "../../table/columns";
import type { KeptJobId } from "./JobsBoard";

const ratio = (part: number | null, total: number | null): number | null => {
  const percentOf = share(part, total);
  return percentOf === null ? null : percentOf / 100;
};

const hours = (seconds: number | null): string => (seconds === null ? UNKNOWN : (seconds / 3600).toFixed(1));

export const jobKey = (job: Pick<JobRow, "namespace" | "type" | "name">): string => `${job.namespace}/${job.type}/${job.name}`;

/** Deleted jobs may have one name. */
export const jobRowKey = (job: Pick<JobRow, "namespace" | "type" | "name" | "uid" | "live">): string => (job.live ? jobKey(job) : `${jobKey(job)} ${job.uid}`);

/** The address of its page. */
export const jobPage = ([namespace, type, name, uid]: KeptJobId): string => `/jobs/${[namespace, type, name].map(encodeURIComponent).join("/")}${uid === undefined ? "" : `?uid=${encodeURIComponent(uid)}`}`;

/** It asks for memory of shared cards, and for no whole one. */
export const shares = (job: Pick<JobRow, "gpusRequested" | "gpuMemoryRequestedMiB">): boolean => job.gpusRequested === 0 && job.gpuMemoryRequestedMiB !== null;

/** What a job asks for: cards, or where it shares them their memory. */
export function requested(job: Pick<JobRow, "gpusRequested" | "gpuMemoryRequestedMiB">): string {
  return shares(job) ? memory(job.gpuMemoryRequestedMiB) : gpus(job.gpusRequested);
}

/** The reason of a wait as a tooltip of its status: Fairlead's sentence, then the source's message. */
export const whyOf = (waiting: Waiting | null, words: Pick<Words, "t" | "code">): string => (waiting ? [whyWords(waiting, words), ...saidBeside(waiting)].filter(Boolean).join("\n") : "");

/** Number of clauses of a quota message in a row: the request, and what is short. The panel has all. */
const CLAUSES = 2;

/** Beside the status of its row: why, in our own words where we have some, as short as a row needs it. */
export const besideOf = (waiting: Waiting | null, words: Pick<Words, "t" | "code">): string => {
  if (!waiting) return "";
  const { code } = words;
  const { sentence } = waiting;
  // The panel shows the state of the quota next to a lack of nodes.
  const short = { ...waiting, clauses: waiting.clauses.slice(0, CLAUSES), sentence: sentence && { ...sentence, code: sentence.code.replace(/-leaf$/, "") } };
  const [reason, why] = [code("reason", waiting.reason, {}, waiting.reason), whyWords(short, words)];
  // Quota's sentence begins with what is asked: its reason stands before it, for the row may have room for no more.
  return ` · ${why === null ? reason : waiting.sentence ? why : `${reason}: ${why}`}`;
};

export function jobColumns(words: Pick<Words, "t" | "code">): Column<JobRow>[] {
  const { t } = words;
  return [
    { key: "namespace", head: t("col.namespace"), width: 96, mono: true, title: (j) => j.namespace, cell: (j) => j.namespace },
    { key: "name", head: t("col.jobName"), width: 168, mono: true, fixed: true, title: (j) => j.name, cell: (j) => j.name },
    { key: "type", head: t("col.jobType"), width: 102, mono: true, cell: (j) => j.type },
    { key: "status", head: t("col.jobStatus"), width: 286, title: (j) => whyOf(j.waiting, words), cell: (j) => <Status word={j.status} suffix={besideOf(j.waiting, words)} /> },
    { key: "durationSeconds", head: t("col.duration"), width: 76, number: true, cell: (j) => duration(j.durationSeconds) },
    { key: "gpusRequested", head: t("col.gpusRequested"), width: 74, number: true, title: (j) => (j.gpuMemoryRequestedMiB === null ? "" : `${t("col.memoryRequested")}: ${memory(j.gpuMemoryRequestedMiB)}`), cell: requested },
    { key: "gpuMemoryAllocatedMiB", head: t("col.jobMemoryAllocated"), unit: "GiB", width: 98, number: true, cell: (j) => memoryInGib(j.gpuMemoryAllocatedMiB) },
    { key: "gpuMemoryUsedMiB", head: t("col.memoryUsed"), unit: "GiB", width: 92, number: true, bar: (j) => ratio(j.gpuMemoryUsedMiB, j.gpuMemoryUsedOfMiB), cell: (j) => memoryInGib(j.gpuMemoryUsedMiB) },
    { key: "gpuUtilPercent", head: t("col.utilization"), width: 92, number: true, bar: (j) => ratio(j.gpuUtilPercent, 100), cell: (j) => percent(j.gpuUtilPercent) },
    { key: "gpusAllocated", head: t("col.gpusHeld"), width: 110, number: true, optional: true, cell: (j) => gpus(j.gpusAllocated) },
    { key: "gpuMemoryRequestedMiB", head: t("col.memoryRequested"), unit: "GiB", width: 140, number: true, optional: true, cell: (j) => memoryInGib(j.gpuMemoryRequestedMiB) },
    { key: "coreSeconds", head: t("col.coreHours"), width: 100, number: true, optional: true, cell: (j) => hours(j.coreSeconds) },
    { key: "gpuSeconds", head: t("col.gpuHours"), width: 100, number: true, optional: true, cell: (j) => hours(j.gpuSeconds) },
    { key: "user", head: t("col.user"), width: 110, optional: true, cell: (j) => j.user || UNKNOWN },
    { key: "quotaPath", head: t("col.quotaPath"), width: 140, mono: true, optional: true, cell: (j) => j.quotaPath || UNKNOWN },
    { key: "createdAt", head: t("col.created"), width: 100, optional: true, cell: (j) => <Ago at={j.createdAt} /> },
  ];
}
