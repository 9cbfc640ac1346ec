// The cards of one node in the side panel, one row each, and the pods that hold them; its page has both in one table.
// A pod may hold part of an unknown card: it is among the pods, and on no card.
import { useMemo } from "react";
import type { GpuRow, MigInstanceRow, NodeDetail, NodePod } from "../../api/types";
import { count, exactMemory, gpus, memory, memoryFraction, percent, share, units, UNKNOWN } from "../../format/format";
import { instanceName } from "../../gpumap/instances";
import { useWords, type Words } from "../../i18n/locale";
import { isMessageKey } from "../../i18n/translate";
import { Ago } from "../../parts/Ago";
import { Command, Copied } from "../../parts/Copy";
import { Empty } from "../../parts/States";
import { Status, toneOf } from "../../parts/Status";
import { Link } from "../../router/Link";
import type { Column } from "../../table/columns";
import { DataTable } from "../../table/DataTable";
import { CsvHead } from "../../table/RowsCsv";
import { modeWord } from "./columns";

export function Cards({ detail }: { detail: NodeDetail }) {
  const { t } = useWords();
  const columns = useMemo(() => cardColumns(detail, t), [detail, t]);
  if (detail.gpus.length === 0) return null;
  return (
    <section className="section">
      <CsvHead title={t("node.cards")} name="node-gpus" rows={detail.gpus} />
      <div className="nested">
        <DataTable name="node-gpus" caption={t("node.cards")} columns={columns} rows={detail.gpus} rowKey={(g) => String(g.index)} walkable />
      </div>
      <Instances detail={detail} />
    </section>
  );
}

interface OnCard {
  readonly gpu: GpuRow;
  readonly instance: MigInstanceRow;
}

function Instances({ detail }: { detail: NodeDetail }) {
  const { t } = useWords();
  const rows = detail.gpus.flatMap((gpu) => gpu.migInstances.map((instance): OnCard => ({ gpu, instance })));
  if (rows.length === 0) return null;
  return (
    <>
      <CsvHead title={t("node.instances")} name="node-instances" rows={rows.map(({ gpu, instance }) => ({ index: gpu.index, ...instance }))} />
      <div className="nested">
        <DataTable name="node-instances" caption={t("node.instances")} columns={instanceColumns(t)} rows={rows} rowKey={({ gpu, instance }) => `${gpu.index} ${instance.id}`} walkable />
      </div>
    </>
  );
}

function instanceColumns(t: Words["t"]): Column<OnCard>[] {
  return [
    { key: "index", head: "GPU", width: 52, number: true, cell: ({ gpu }) => gpu.index },
    { key: "profile", head: t("node.instance"), width: 104, mono: true, cell: ({ instance }) => instanceName(instance) },
    { key: "util", head: t("col.utilization"), width: 86, number: true, bar: ({ instance }) => ratioOf(instance.utilPercent, 100), cell: ({ instance }) => percent(instance.utilPercent) },
    { key: "memory", head: t("col.memoryUsed"), width: 118, number: true, bar: ({ instance }) => ratioOf(instance.memoryUsedMiB, instance.memoryTotalMiB), cell: ({ instance }) => memoryFraction(instance.memoryUsedMiB, instance.memoryTotalMiB) },
    { key: "pods", head: t("node.heldBy"), width: 200, mono: true, title: ({ instance }) => heldBy(instance), cell: ({ instance }) => heldBy(instance) || UNKNOWN },
  ];
}

export function NoCards() {
  const { t } = useWords();
  return (
    <Empty why={t("node.noGpus")}>
      {t("node.noGpusNext")} <Command text="kubectl -n kube-system get daemonsets" />
    </Empty>
  );
}

/** Columns that no card has a value for are left out: units of whole cards, cores where the node offers none. */
export function cardColumns(detail: Pick<NodeDetail, "gpus">, t: Words["t"]): Column<GpuRow>[] {
  const shares = detail.gpus.some((g) => g.units > 0);
  const broken = detail.gpus.some((g) => g.health === "Unhealthy");
  const cores = detail.gpus.some((g) => g.coreFreePercent !== null);
  const columns: (Column<GpuRow> | false)[] = [
    { key: "index", head: "GPU", width: 52, number: true, cell: (g) => g.index },
    { key: "mode", head: t("col.gpuMode"), width: 78, cell: (g) => modeWord(g.mode, t) },
    { key: "health", head: t("node.health"), width: broken ? 190 : 124, cell: (g) => <Health gpu={g} /> },
    shares && { key: "units", head: t("node.units"), width: 72, number: true, barTone: "blue", bar: (g) => ratioOf(g.unitsAllocated, g.units), cell: (g) => units(g.unitsAllocated, g.units) },
    { key: "granted", head: t("col.memoryAllocated"), width: 118, number: true, barTone: "blue", bar: (g) => ratioOf(g.memoryAllocatedMiB, g.memoryTotalMiB), title: (g) => `${exactMemory(g.memoryAllocatedMiB)} / ${exactMemory(g.memoryTotalMiB)}`, cell: (g) => memoryFraction(g.memoryAllocatedMiB, g.memoryTotalMiB) },
    { key: "free", head: t("node.free"), width: 76, number: true, title: (g) => exactMemory(g.memoryFreeMiB), cell: (g) => (g.units > 0 ? t("node.unitsFree", { n: g.unitsFree }) : memory(g.memoryFreeMiB)) },
    cores && { key: "cores", head: t("node.cores"), unit: "%", width: 76, number: true, cell: (g) => (g.coreAllocatedPercent === null ? UNKNOWN : `${g.coreAllocatedPercent} / 100`) },
    { key: "util", head: t("col.utilization"), width: 86, number: true, bar: (g) => (g.utilPercent === null ? null : g.utilPercent / 100), cell: (g) => percent(g.utilPercent) },
    { key: "memory", head: t("col.memoryUsed"), width: 118, number: true, bar: (g) => ratioOf(g.memoryUsedMiB, g.memoryTotalMiB), cell: (g) => memoryFraction(g.memoryUsedMiB, g.memoryTotalMiB) },
    { key: "temperature", head: "°C", width: 42, number: true, cell: (g) => (g.temperatureC === null ? UNKNOWN : Math.round(g.temperatureC)) },
    { key: "power", head: "W", width: 44, number: true, cell: (g) => (g.powerW === null ? UNKNOWN : Math.round(g.powerW)) },
    { key: "pods", head: t("node.heldBy"), width: 160, mono: true, title: heldBy, cell: (g) => heldBy(g) || UNKNOWN },
  ];
  return columns.filter((column) => column !== false);
}

export const ratioOf = (part: number | null, total: number | null): number | null => {
  const of100 = share(part, total);
  return of100 === null ? null : of100 / 100;
};

export const whyUnhealthy = (gpu: GpuRow): string => (toneOf(gpu.health) === "good" ? "" : gpu.reason || (gpu.lastXid ? `XID ${gpu.lastXid.code}` : ""));

/** Each pod once, however many of its containers sit on the card. */
const heldBy = (gpu: Pick<GpuRow, "pods">): string => [...new Set(gpu.pods.map((pod) => `${pod.namespace}/${pod.name}`))].join(", ");

export function Health({ gpu }: { gpu: GpuRow }) {
  const { t } = useWords();
  const why = whyUnhealthy(gpu);
  if (toneOf(gpu.health) !== "good") return <span title={why}><Status word={gpu.health} suffix={why ? ` · ${why}` : ""} /></span>;
  const flags = gpu.flags.map((flag) => flagWord(flag, t)).join(", ");
  if (flags) return <span className={`flag ${gpu.flags.includes("overcommitted") ? "broken" : ""}`} title={flags}>{flags}</span>;
  return <Status word={gpu.mode === "draining" ? "Draining" : gpu.health} />;
}

function flagWord(flag: string, t: Words["t"]): string {
  const key = `flag.${flag}`;
  return isMessageKey(key) ? t(key) : flag;
}

export function JobLink({ of }: { of: { readonly namespace: string; readonly job: string } }) {
  return of.job ? <Link to={`/jobs/${of.namespace}/${of.job}`}>{of.job.split("/").at(-1)}</Link> : UNKNOWN;
}

export function Pods({ detail }: { detail: NodeDetail }) {
  const { t } = useWords();
  if (detail.pods.length === 0) return null;
  return (
    <section className="section">
      <CsvHead title={t("node.pods")} name="node-pods" rows={detail.pods} />
      <div className="nested">
        <DataTable name="node-pods" caption={t("node.pods")} columns={podColumns(t)} rows={detail.pods} rowKey={(p) => `${p.namespace}/${p.name}`} maxRows={10} walkable />
      </div>
    </section>
  );
}

export function podColumns(t: Words["t"]): Column<NodePod>[] {
  return [
    { key: "name", head: t("node.pod"), width: 200, mono: true, title: (p) => `${p.namespace}/${p.name}`, cell: (p) => <Copied text={`${p.namespace}/${p.name}`} /> },
    { key: "job", head: t("col.jobName"), width: 120, mono: true, cell: (p) => <JobLink of={p} /> },
    { key: "status", head: t("col.status"), width: 130, cell: (p) => <Status word={p.status} /> },
    { key: "cards", head: "GPU", width: 92, number: true, cell: (p) => (p.pending ? <span className="flag">{t("node.pendingCard")}</span> : p.gpuIndexes.join(", ") || UNKNOWN) },
    { key: "units", head: t("node.units"), width: 72, number: true, cell: (p) => (p.units > 0 ? count(p.units) : UNKNOWN) },
    { key: "gpus", head: t("node.gpus"), width: 52, number: true, cell: (p) => (p.pending ? UNKNOWN : gpus(p.gpus)) },
    { key: "memory", head: t("col.memoryAllocated"), width: 94, number: true, title: (p) => exactMemory(p.gpuMemoryAllocatedMiB), cell: (p) => memory(p.gpuMemoryAllocatedMiB) },
    { key: "since", head: t("node.since"), width: 76, cell: (p) => <Ago at={p.heldSince} /> },
  ];
}
