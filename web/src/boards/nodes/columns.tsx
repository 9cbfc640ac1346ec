// The columns of document 000's `GPU Node Details`, in its order, and the optional ones after them.
import type { NodeRow } from "../../api/types";
import { gpus, memory, memoryInGib, percent, share, units, UNKNOWN } from "../../format/format";
import type { Words } from "../../i18n/locale";
import { isMessageKey } from "../../i18n/translate";
import { Ago } from "../../parts/Ago";
import { Status } from "../../parts/Status";
import type { Column } from "../../table/columns";

const ratio = (part: number | null, total: number | null): number | null => {
  const percentOf = share(part, total);
  return percentOf === null ? null : percentOf / 100;
};

const orUnknown = (text: string | null): string => text || UNKNOWN;

export function modeWord(mode: string, t: Words["t"]): string {
  const key = `mode.${mode}`;
  return isMessageKey(key) ? t(key) : mode;
}

/** Several modes stand side by side; cards on their way from one to the other are counted. */
export const modesOf = (node: NodeRow, t: Words["t"]): string => {
  const words = node.gpuMode.split(",").map((mode) => modeWord(mode, t)).join(", ");
  return node.gpusDraining > 0 ? `${words} · ${t("mode.drainingCards", { n: node.gpusDraining })}` : words;
};

/** Who limits memory on this node, and how strictly: never called isolation where nothing is enforced. */
export function isolationWord(provider: string, t: Words["t"]): string {
  const key = `isolation.${provider}`;
  return isMessageKey(key) ? t(key) : orUnknown(provider);
}

/** `drains`: some node has cards that change their mode, which takes more words. */
export function nodeColumns(t: Words["t"], drains = false): Column<NodeRow>[] {
  return [
    { key: "name", head: t("col.name"), width: 140, mono: true, fixed: true, title: (n) => n.name, cell: (n) => n.name },
    { key: "ip", head: t("col.ip"), width: 106, mono: true, cell: (n) => orUnknown(n.ip) },
    { key: "role", head: t("col.role"), width: 80, title: (n) => n.role, cell: (n) => n.role },
    { key: "status", head: t("col.status"), width: 100, cell: (n) => <Status word={n.status} suffix={n.schedulable ? "" : ` · ${t("status.cordoned")}`} /> },
    { key: "gpuMode", head: t("col.gpuMode"), width: drains ? 148 : 74, title: (n) => modesOf(n, t), cell: (n) => modesOf(n, t) },
    { key: "gpusTotal", head: t("col.gpusTotal"), width: 58, number: true, cell: (n) => gpus(n.gpusTotal) },
    { key: "gpuMemoryTotalMiB", head: t("col.memoryTotal"), unit: "GiB", width: 94, number: true, cell: (n) => memoryInGib(n.gpuMemoryTotalMiB) },
    { key: "gpusAllocated", head: t("col.gpusAllocated"), width: 76, number: true, barTone: "blue", bar: (n) => ratio(n.gpusAllocated, n.gpusTotal), cell: (n) => gpus(n.gpusAllocated) },
    { key: "gpuMemoryAllocatedMiB", head: t("col.memoryAllocated"), unit: "GiB", width: 98, number: true, barTone: "blue", bar: (n) => ratio(n.gpuMemoryAllocatedMiB, n.gpuMemoryTotalMiB), cell: (n) => memoryInGib(n.gpuMemoryAllocatedMiB) },
    { key: "gpuMemoryUsedMiB", head: t("col.memoryUsed"), unit: "GiB", width: 94, number: true, bar: (n) => ratio(n.gpuMemoryUsedMiB, n.gpuMemoryUsedOfMiB), cell: (n) => memoryInGib(n.gpuMemoryUsedMiB) },
    { key: "gpuUtilPercent", head: t("col.nodeUtilization"), width: 96, number: true, bar: (n) => ratio(n.gpuUtilPercent, 100), cell: (n) => percent(n.gpuUtilPercent) },
    { key: "gpuUnitsAllocated", head: t("node.units"), width: 110, number: true, optional: true, barTone: "blue", bar: (n) => ratio(n.gpuUnitsAllocated, n.gpuUnitsTotal), cell: (n) => units(n.gpuUnitsAllocated, n.gpuUnitsTotal) },
    { key: "gpuUnitsOvercommitted", head: t("flag.overcommitted"), width: 110, number: true, optional: true, cell: (n) => (n.gpuUnitsTotal > 0 ? n.gpuUnitsOvercommitted : UNKNOWN) },
    { key: "gpuModel", head: t("col.gpuModel"), width: 190, optional: true, cell: (n) => orUnknown(n.gpuModel) },
    { key: "gpusUnhealthy", head: t("col.gpusUnhealthy"), width: 110, number: true, optional: true, cell: (n) => gpus(n.gpusUnhealthy) },
    { key: "gpusReporting", head: t("col.gpusReporting"), width: 110, number: true, optional: true, cell: (n) => gpus(n.gpusReporting) },
    { key: "isolation", head: t("col.isolation"), width: 110, optional: true, cell: (n) => isolationWord(n.isolation, t) },
    { key: "driverVersion", head: t("col.driver"), width: 110, optional: true, cell: (n) => orUnknown(n.driverVersion) },
    { key: "instanceType", head: t("col.instanceType"), width: 150, optional: true, cell: (n) => orUnknown(n.instanceType) },
    { key: "zone", head: t("col.zone"), width: 110, optional: true, cell: (n) => orUnknown(n.zone) },
    { key: "cpuTotalCores", head: t("col.cpu"), unit: t("unit.cores"), width: 100, number: true, optional: true, cell: (n) => n.cpuTotalCores },
    { key: "memoryTotalMiB", head: t("col.memory"), width: 110, number: true, optional: true, cell: (n) => memory(n.memoryTotalMiB) },
    { key: "createdAt", head: t("col.created"), width: 100, optional: true, cell: (n) => <Ago at={n.createdAt} /> },
  ];
}
