// The cards of one node and who holds them, as one table: a card with one holder is one row, several holders follow their card.
// A pod may hold an unknown card: it is at the end, on no card.
import { useMemo } from "react";
import type { GpuPod, GpuRow, MigInstanceRow, NodeDetail, NodePod } from "../../api/types";
import { count, exactMemory, memory, memoryFraction, percent, units, UNKNOWN } from "../../format/format";
import { instanceName } from "../../gpumap/instances";
import { useWords, type Words } from "../../i18n/locale";
import { Ago } from "../../parts/Ago";
import { Copied } from "../../parts/Copy";
import { Status } from "../../parts/Status";
import type { Column } from "../../table/columns";
import { DataTable } from "../../table/DataTable";
import { CsvHead } from "../../table/RowsCsv";
import { modeWord } from "./columns";
import { Health, JobLink, ratioOf, whyUnhealthy } from "./NodeCards";

export interface HeldRow {
  readonly key: string;
  /** On the card's own row. */
  readonly gpu: GpuRow | null;
  /** Of a divided card: on the instance's row. */
  readonly instance: MigInstanceRow | null;
  /** A holder, and what it has of this card. */
  readonly seat: GpuPod | null;
  readonly pod: NodePod | null;
}

const nameOf = (of: { readonly namespace: string; readonly name: string }): string => `${of.namespace}/${of.name}`;

/** Each card once, each holder of it once: on the card's row where it alone has the whole of it, else below. Each instance of a divided card has its row. */
export function heldRows({ gpus, pods }: Pick<NodeDetail, "gpus" | "pods">): HeldRow[] {
  const podOf = new Map(pods.map((pod) => [nameOf(pod), pod]));
  const seated = new Set(gpus.flatMap((gpu) => gpu.pods.map(nameOf)));
  const rows = gpus.flatMap((gpu): HeldRow[] => {
    if (gpu.migInstances.length > 0) return [{ key: String(gpu.index), gpu, instance: null, seat: null, pod: null }, ...gpu.migInstances.flatMap((instance) => instanceRows(gpu, instance, podOf))];
    const seats = gpu.units > 0 ? gpu.pods : [...new Map(gpu.pods.map((seat) => [nameOf(seat), seat])).values()];
    const [only] = seats;
    const alone = gpu.units === 0 && seats.length === 1 && only ? only : null;
    const own: HeldRow = { key: String(gpu.index), gpu, instance: null, seat: alone, pod: (alone && podOf.get(nameOf(alone))) ?? null };
    const below = alone ? [] : seats.map((seat): HeldRow => ({ key: `${gpu.index} ${nameOf(seat)}/${seat.container}`, gpu: null, instance: null, seat, pod: podOf.get(nameOf(seat)) ?? null }));
    return [own, ...below];
  });
  const elsewhere = pods.filter((pod) => !seated.has(nameOf(pod)));
  return [...rows, ...elsewhere.map((pod): HeldRow => ({ key: `?${nameOf(pod)}`, gpu: null, instance: null, seat: null, pod }))];
}

function instanceRows(gpu: GpuRow, instance: MigInstanceRow, podOf: ReadonlyMap<string, NodePod>): HeldRow[] {
  const seats = instance.pods.length > 0 ? instance.pods : [null];
  return seats.map((seat, place) => ({ key: `${gpu.index} ${instance.id} ${place}`, gpu: null, instance, seat, pod: (seat && podOf.get(nameOf(seat))) ?? null }));
}

/** Letters of the longest fault: it is read whole at any width, so the column stands first and takes the room it needs. */
const FAULT_LETTER = 7.4;
const FAULT_ROOM = 130;

/** Columns that no row has a value for are left out: units of whole cards, containers where each pod has its card, models that the node has but once. */
export function heldColumns({ gpus, pods }: Pick<NodeDetail, "gpus" | "pods">, t: Words["t"]): Column<HeldRow>[] {
  const shares = gpus.some((g) => g.units > 0) || pods.some((p) => p.units > 0);
  const cores = gpus.some((g) => g.coreFreePercent !== null);
  const models = new Set(gpus.map((g) => g.model)).size > 1;
  const fault = Math.max(0, ...gpus.map((g) => whyUnhealthy(g).length));
  const divided = gpus.some((g) => g.migInstances.length > 0);
  const held = (row: HeldRow) => row.pod ?? row.seat;
  const columns: (Column<HeldRow> | false)[] = [
    { key: "index", head: "GPU", width: 52, number: true, cell: ({ gpu }) => gpu?.index ?? "" },
    { key: "health", head: t("node.health"), width: Math.max(116, fault > 0 ? Math.ceil(FAULT_ROOM + fault * FAULT_LETTER) : 0), cell: ({ gpu, instance, seat }) => (gpu ? <Health gpu={gpu} /> : !seat && !instance && <span className="flag">{t("node.pendingCard")}</span>) },
    divided && { key: "instance", head: t("node.instance"), width: 104, mono: true, cell: ({ instance }) => instance && instanceName(instance) },
    { key: "pod", head: t("node.heldBy"), width: 210, mono: true, title: (row) => nameOrNothing(held(row)), cell: (row) => whom(row) },
    shares && { key: "container", head: t("node.container"), width: 100, mono: true, title: ({ seat }) => seat?.container ?? "", cell: ({ seat }) => seat?.container ?? "" },
    { key: "job", head: t("col.jobName"), width: 96, mono: true, cell: (row) => { const of = held(row); return of && <JobLink of={of} />; } },
    { key: "status", head: t("col.status"), width: 148, cell: ({ pod }) => pod && <Status word={pod.status} /> },
    { key: "since", head: t("node.since"), width: 76, cell: ({ pod }) => pod && <Ago at={pod.heldSince} /> },
    shares && { key: "units", head: t("node.units"), width: 72, number: true, barTone: "blue", bar: ({ gpu }) => gpu && ratioOf(gpu.unitsAllocated, gpu.units), cell: ({ gpu, seat, pod }) => (gpu ? units(gpu.unitsAllocated, gpu.units) : countOrNone(seat?.units ?? pod?.units)) },
    shares && { key: "granted", head: t("col.memoryAllocated"), width: 116, number: true, barTone: "blue", bar: ({ gpu }) => gpu && ratioOf(gpu.memoryAllocatedMiB, gpu.memoryTotalMiB), cell: ({ gpu, seat, pod }) => (gpu ? memoryFraction(gpu.memoryAllocatedMiB, gpu.memoryTotalMiB) : exactMemory(seat ? seat.allocatedMiB : (pod?.gpuMemoryAllocatedMiB ?? null))) },
    shares && { key: "free", head: t("node.free"), width: 76, number: true, title: ({ gpu }) => (gpu ? exactMemory(gpu.memoryFreeMiB) : ""), cell: ({ gpu }) => gpu && (gpu.units > 0 ? t("node.unitsFree", { n: gpu.unitsFree }) : memory(gpu.memoryFreeMiB)) },
    cores && { key: "cores", head: t("node.cores"), unit: "%", width: 76, number: true, cell: ({ gpu, seat }) => (gpu ? (gpu.coreAllocatedPercent === null ? UNKNOWN : `${gpu.coreAllocatedPercent} / 100`) : seat && (seat.corePercent || UNKNOWN)) },
    { key: "util", head: t("col.utilization"), width: 86, number: true, bar: ({ gpu, instance, seat }) => ratioOf((gpu ?? instance ?? seat)?.utilPercent ?? null, 100), cell: ({ gpu, instance, seat }) => { const of = gpu ?? instance ?? seat; return of && percent(of.utilPercent); } },
    { key: "memory", head: t("col.memoryUsed"), width: 116, number: true, bar: ({ gpu, instance, seat }) => { const of = gpu ?? instance; return of ? ratioOf(of.memoryUsedMiB, of.memoryTotalMiB) : seat && ratioOf(seat.usedMiB, seat.allocatedMiB); }, cell: ({ gpu, instance, seat }) => { const of = gpu ?? instance; return of ? memoryFraction(of.memoryUsedMiB, of.memoryTotalMiB) : seat && exactMemory(seat.usedMiB); } },
    { key: "temperature", head: "°C", width: 42, number: true, cell: ({ gpu }) => gpu && (gpu.temperatureC === null ? UNKNOWN : Math.round(gpu.temperatureC)) },
    { key: "power", head: "W", width: 48, number: true, cell: ({ gpu }) => gpu && (gpu.powerW === null ? UNKNOWN : Math.round(gpu.powerW)) },
    { key: "uuid", head: t("node.uuid"), width: 200, mono: true, title: ({ gpu }) => gpu?.uuid ?? "", cell: ({ gpu }) => gpu && (gpu.uuid ? <Copied text={gpu.uuid} /> : UNKNOWN) },
    models && { key: "model", head: t("col.gpuModel"), width: 100, title: ({ gpu }) => gpu?.model ?? "", cell: ({ gpu }) => gpu && (gpu.model || UNKNOWN) },
    { key: "mode", head: t("col.gpuMode"), width: 80, cell: ({ gpu }) => gpu && modeWord(gpu.mode, t) },
  ];
  return columns.filter((column) => column !== false);
}

const nameOrNothing = (of: GpuPod | NodePod | null): string => (of ? nameOf(of) : "");
const countOrNone = (n: number | undefined): string => (n ? count(n) : UNKNOWN);

/** A dash for no holder; a shared or divided card has its holders below. */
function whom({ gpu, instance, seat, pod }: HeldRow) {
  const of = pod ?? seat;
  if (of) return <Copied text={nameOf(of)} />;
  return instance || (gpu && gpu.pods.length === 0) ? UNKNOWN : "";
}

/** The same rows as a file: each names its card, which on the page the row above does. */
export function heldCsv(rows: readonly HeldRow[]): object[] {
  let card: GpuRow | null = null;
  return rows.map(({ gpu, instance, seat, pod }) => {
    card = gpu ?? (instance || seat ? card : null);
    const of = pod ?? seat;
    const read = gpu ?? instance ?? seat;
    return {
      index: card?.index ?? null,
      uuid: card?.uuid ?? "",
      model: card?.model ?? "",
      mode: card?.mode ?? "",
      health: gpu?.health ?? "",
      reason: gpu ? whyUnhealthy(gpu) : "",
      instance: instance ? instanceName(instance) : "",
      namespace: of?.namespace ?? "",
      name: of?.name ?? "",
      container: seat?.container ?? "",
      job: of?.job ?? "",
      status: pod?.status ?? "",
      heldSince: pod?.heldSince ?? "",
      memoryTotalMiB: (gpu ?? instance)?.memoryTotalMiB ?? null,
      memoryAllocatedMiB: gpu?.memoryAllocatedMiB ?? seat?.allocatedMiB ?? pod?.gpuMemoryAllocatedMiB ?? null,
      memoryUsedMiB: (gpu ?? instance)?.memoryUsedMiB ?? seat?.usedMiB ?? null,
      utilPercent: read?.utilPercent ?? null,
      temperatureC: gpu?.temperatureC ?? null,
      powerW: gpu?.powerW ?? null,
    };
  });
}

export function Held({ detail }: { detail: NodeDetail }) {
  const { t } = useWords();
  const rows = useMemo(() => heldRows(detail), [detail]);
  const columns = useMemo(() => heldColumns(detail, t), [detail, t]);
  return (
    <section className="section" data-testid="node-held">
      <CsvHead title={t("node.cardsHeld")} name={`${detail.node.name}-gpus`} rows={heldCsv(rows)} />
      <div className="nested">
        <DataTable name="node-gpus" caption={t("node.cardsHeld")} columns={columns} rows={rows} rowKey={(row) => row.key} maxRows={18} walkable />
      </div>
    </section>
  );
}
