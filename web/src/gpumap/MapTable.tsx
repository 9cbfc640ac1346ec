// The map as a table: the same cells, one row each, for those who read rather than look.
// The map's answer knows no holders; they are asked from the nodes of the rows in sight, as the card under the pointer does.
import type { ReactNode } from "react";
import { useNode } from "../api/queries";
import type { GpuRow, NodeDetail } from "../api/types";
import { duration, memory, memoryFraction, percent, units, UNKNOWN } from "../format/format";
import { useWords, type Words } from "../i18n/locale";
import { Ago } from "../parts/Ago";
import { navigate } from "../router/router";
import type { Column } from "../table/columns";
import { DataTable } from "../table/DataTable";
import type { Cell, GpuMapData } from "./cells";
import { instancesHeld } from "./instances";
import { useRested } from "./useRested";

export function MapTable({ map }: { map: GpuMapData }) {
  const { t } = useWords();
  const nameOf = (cell: Cell) => map.nodes[cell.node]?.name ?? "";
  const modelOf = (cell: Cell) => map.models[map.nodes[cell.node]?.model ?? 0] || UNKNOWN;
  const detail = (c: Cell, say: Say, meanwhile: ReactNode) => <CardDetail node={nameOf(c)} index={c.index} say={say} meanwhile={meanwhile} />;
  const columns: Column<Cell>[] = [
    { key: "node", head: t("col.node"), width: 120, mono: true, title: nameOf, cell: nameOf },
    { key: "index", head: "GPU", width: 44, number: true, cell: (c) => c.index },
    { key: "model", head: t("col.gpuModel"), width: 140, title: modelOf, cell: modelOf },
    { key: "state", head: t("map.state"), width: 92, cell: (c) => t(`map.state.${c.state}`) },
    { key: "util", head: t("map.by.util"), width: 76, number: true, cell: (c) => percent(c.util) },
    { key: "memory", head: t("map.by.memory"), width: 130, number: true, cell: (c) => detail(c, memoryOf, percent(c.memory)) },
    { key: "granted", head: t("map.granted"), width: 92, number: true, cell: (c) => detail(c, (gpu) => instancesHeld(gpu, t) ?? grantedOf(gpu), UNKNOWN) },
    { key: "celsius", head: "°C", width: 44, number: true, cell: (c) => (c.celsius === null ? UNKNOWN : Math.round(c.celsius)) },
    { key: "idle", head: t("map.by.idle"), width: 76, number: true, cell: (c) => (c.idleSeconds ? duration(c.idleSeconds) : UNKNOWN) },
    { key: "holders", head: t("node.heldBy"), width: 190, mono: true, cell: (c) => (c.slices.length > 0 ? detail(c, (gpu) => holdersOf(gpu) || teamsOf(c, map, t), teamsOf(c, map, t)) : UNKNOWN) },
    { key: "since", head: t("map.since"), width: 84, cell: (c) => (c.slices.length > 0 ? detail(c, sinceOf, UNKNOWN) : UNKNOWN) },
  ];
  return (
    <DataTable
      name="gpu-map"
      caption={t("map.title")}
      columns={columns}
      rows={map.cells}
      rowKey={(c) => `${nameOf(c)}/${c.index}`}
      maxRows={12}
      onOpen={(c) => navigate(`/nodes/${encodeURIComponent(nameOf(c))}`)}
    />
  );
}

/** All that is known where no pod is: the namespace that the card counts for. */
const teamsOf = (cell: Cell, map: GpuMapData, t: Words["t"]): string => [...new Set(cell.slices.map(([team]) => map.teams[team] || t("map.anotherTeam")))].join(", ") || UNKNOWN;

type Say = (gpu: GpuRow, pods: NodeDetail["pods"]) => ReactNode;

/** Values of a card that only the node's own answer contains; `meanwhile` until it arrives. */
function CardDetail({ node, index, say, meanwhile }: { node: string; index: number; say: Say; meanwhile: ReactNode }) {
  const rested = useRested(node);
  const { data } = useNode(rested ? node : null);
  const gpu = data?.gpus.find((g) => g.index === index);
  return data && gpu ? say(gpu, data.pods) : meanwhile;
}

const memoryOf: Say = (gpu) => memoryFraction(gpu.memoryUsedMiB, gpu.memoryTotalMiB);

const holdersOf = (gpu: GpuRow): ReactNode => {
  const names = gpu.pods.map((pod) => `${pod.namespace}/${pod.name}`).join(", ");
  return names && <span title={names}>{names}</span>;
};

/** Of a shared card its units; of a whole one its memory. */
const grantedOf = (gpu: GpuRow): ReactNode => (gpu.units > 0 ? units(gpu.unitsAllocated, gpu.units) : memory(gpu.memoryAllocatedMiB));

/** Since the first of them. */
const sinceOf: Say = (gpu, pods) => {
  const here = new Set(gpu.pods.map((pod) => `${pod.namespace}/${pod.name}`));
  const times = pods.flatMap((pod) => (here.has(`${pod.namespace}/${pod.name}`) && pod.heldSince ? [pod.heldSince] : []));
  return <Ago at={times.toSorted()[0] ?? null} />;
};
