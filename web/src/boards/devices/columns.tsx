// The columns of the list of cards.
import type { ListedGpu } from "../../api/types";
import { duration, memoryInGib, percent, units, UNKNOWN } from "../../format/format";
import type { Words } from "../../i18n/locale";
import { isMessageKey } from "../../i18n/translate";
import { Status } from "../../parts/Status";
import { Link } from "../../router/Link";
import type { Column } from "../../table/columns";
import { modeWord } from "../nodes/columns";

/** The word of the GPU map. */
export function stateWord(state: string, t: Words["t"]): string {
  const key = `map.state.${state}`;
  return isMessageKey(key) ? t(key) : state;
}

const part = (of: number | null, whole: number | null): number | null => (of === null || !whole ? null : of / whole);
const rounded = (value: number | null, unit: string): string => (value === null ? UNKNOWN : `${Math.round(value)} ${unit}`);

const HOLDERS_SHOWN = 1;

/** The first of them, and how many more: all are in the title and on the page of the node. */
export const holdersText = ({ holders }: Pick<ListedGpu, "holders">): string =>
  holders.length > HOLDERS_SHOWN ? `${holders.slice(0, HOLDERS_SHOWN).join(", ")} +${holders.length - HOLDERS_SHOWN}` : holders.join(", ") || UNKNOWN;

export function deviceColumns(t: Words["t"]): Column<ListedGpu>[] {
  return [
    { key: "node", head: t("col.node"), width: 130, mono: true, fixed: true, title: (g) => g.node, cell: (g) => <Link to={`/nodes/${encodeURIComponent(g.node)}`}>{g.node}</Link> },
    { key: "index", head: "GPU", width: 44, number: true, fixed: true, cell: (g) => g.index },
    { key: "model", head: t("col.gpuModel"), width: 104, title: (g) => g.model, cell: (g) => g.model || UNKNOWN },
    { key: "mode", head: t("col.gpuMode"), width: 82, cell: (g) => modeWord(g.mode, t) },
    { key: "state", head: t("map.state"), width: 84, cell: (g) => stateWord(g.state, t) },
    { key: "health", head: t("node.health"), width: 100, cell: (g) => <Status word={g.health} /> },
    { key: "holders", head: t("node.heldBy"), width: 164, mono: true, unsortable: true, title: (g) => g.holders.join(", "), cell: holdersText },
    { key: "utilPercent", head: t("col.utilization"), width: 80, number: true, bar: (g) => part(g.utilPercent, 100), cell: (g) => percent(g.utilPercent) },
    { key: "memoryUsedMiB", head: t("col.memoryUsed"), unit: "GiB", width: 80, number: true, bar: (g) => part(g.memoryUsedMiB, g.memoryTotalMiB), cell: (g) => memoryInGib(g.memoryUsedMiB) },
    { key: "memoryAllocatedMiB", head: t("col.memoryAllocated"), unit: "GiB", width: 98, number: true, barTone: "blue", bar: (g) => part(g.memoryAllocatedMiB, g.memoryTotalMiB), cell: (g) => memoryInGib(g.memoryAllocatedMiB) },
    { key: "memoryTotalMiB", head: t("col.memoryTotal"), unit: "GiB", width: 80, number: true, cell: (g) => memoryInGib(g.memoryTotalMiB) },
    { key: "temperatureC", head: t("panel.temperature"), width: 92, number: true, cell: (g) => rounded(g.temperatureC, "°C") },
    { key: "powerW", head: t("panel.power"), width: 60, number: true, cell: (g) => rounded(g.powerW, "W") },
    { key: "idleSeconds", head: t("map.by.idle"), width: 80, number: true, cell: (g) => duration(g.idleSeconds) },
    { key: "unitsAllocated", head: t("node.units"), width: 110, number: true, optional: true, cell: (g) => (g.units > 0 ? units(g.unitsAllocated, g.units) : UNKNOWN) },
    { key: "uuid", head: "UUID", width: 300, mono: true, optional: true, title: (g) => g.uuid, cell: (g) => g.uuid || UNKNOWN },
  ];
}
