// What is one cell of the map? The server's compact arrays, given names. One object per GPU, made once per answer.
import type { GpuMapAnswer, MapGpu, MapNode } from "../api/types";

/** The server's numbers; the order is the wire's. */
export const STATES = ["free", "allocated", "shared", "unhealthy", "draining", "unknown", "closed", "unreachable"] as const;
export type CellState = (typeof STATES)[number];

/** Kept as on the wire: 40,000 cells have many. */
export type Slice = readonly [team: number, share: number];

export interface Cell {
  readonly node: number;
  readonly index: number;
  readonly state: CellState;
  readonly util: number | null;
  readonly memory: number | null;
  readonly celsius: number | null;
  readonly idleSeconds: number | null;
  readonly slices: readonly Slice[];
}

export interface NodeOnMap {
  readonly name: string;
  readonly model: number;
  readonly mode: string;
  readonly status: string;
  readonly cordoned: boolean;
}

export interface GpuMapData {
  readonly nodes: readonly NodeOnMap[];
  readonly teams: readonly string[];
  readonly models: readonly string[];
  readonly cells: readonly Cell[];
  /** The first cell of each node, and one more at the end. */
  readonly firstCell: Int32Array;
}

/** Nodes come grouped by model (models in the order of their GPUs, most first), then as the server sorts them. */
export function readMap(answer: GpuMapAnswer): GpuMapData {
  const grouped = groupedByModel(answer.nodes, answer.models.length);
  const cells: Cell[] = [];
  const firstCell = new Int32Array(grouped.length + 1);
  const nodes = grouped.map(([name, model, mode, status, gpus, indexes], at): NodeOnMap => {
    firstCell[at] = cells.length;
    gpus.forEach((gpu, position) => cells.push(readCell(at, indexes[position] ?? position, gpu)));
    const [word = "", ...more] = (answer.statuses[status] ?? "").split(",");
    return { name, model, mode: answer.modes[mode] ?? "", status: word, cordoned: more.includes("SchedulingDisabled") };
  });
  firstCell[nodes.length] = cells.length;
  return { nodes, teams: answer.teams, models: answer.models, cells, firstCell };
}

/** How many cells an answer has, without reading them. */
export const sizeOf = (answer: GpuMapAnswer): number => answer.nodes.reduce((sum, [, , , , gpus]) => sum + gpus.length, 0);

/** On the wire no idle time is 0, and the holder of a whole card is a bare number. */
function readCell(node: number, index: number, [state, util, memory, celsius, idle, holders]: MapGpu): Cell {
  const slices: readonly Slice[] = typeof holders === "number" ? [[holders, 1]] : holders;
  return { node, index, state: STATES[state] ?? "unknown", util, memory, celsius, idleSeconds: idle || null, slices };
}

function groupedByModel(nodes: readonly MapNode[], models: number): MapNode[] {
  const size = Array.from({ length: models }, () => 0);
  for (const [, model, , , gpus] of nodes) size[model] = (size[model] ?? 0) + gpus.length;
  return nodes.filter(([, , , , gpus]) => gpus.length > 0).toSorted(([, a], [, b]) => (size[b] ?? 0) - (size[a] ?? 0) || a - b);
}

/** Drawn in slices: cards shared by memory, and those that drain from being shared. */
export const isSplit = (cell: Cell): boolean => cell.slices.length > 0 && (cell.state === "shared" || (cell.state === "draining" && cell.slices[0]?.[1] !== 1));

/** Cells with a holder: they have blue, the teal scale or the team colours. */
export const isHeld = (cell: Cell): boolean => cell.slices.length > 0 || cell.state === "allocated" || cell.state === "shared";

/** Held, and observed doing nothing. Below 1 % counts as nothing: drivers report stray samples. */
export const isIdle = (cell: Cell): boolean => isHeld(cell) && cell.state !== "unreachable" && cell.util !== null && cell.util < 1;

/** GPUs held per team, whole cards and shares alike, most first. */
export function heldByTeam(map: GpuMapData): { team: number; gpus: number }[] {
  const held = new Map<number, number>();
  for (const cell of map.cells) {
    for (const [team, share] of cell.slices) held.set(team, (held.get(team) ?? 0) + share);
  }
  return [...held].map(([team, gpus]) => ({ team, gpus })).sort((a, b) => b.gpus - a.gpus || a.team - b.team);
}
