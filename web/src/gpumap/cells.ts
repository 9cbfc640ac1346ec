// What is one cell of the map? The server's compact arrays, given names. One object per GPU, made once per answer.
import type { GpuMapAnswer, MapNode } from "../api/types";

/** The server's numbers; the order is the wire's. */
export const STATES = ["free", "allocated", "shared", "unhealthy", "draining", "unknown"] as const;
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

export interface GpuMapData {
  readonly nodes: readonly MapNode[];
  readonly teams: readonly string[];
  readonly models: readonly string[];
  readonly cells: readonly Cell[];
  /** The first cell of each node, and one more at the end. */
  readonly firstCell: Int32Array;
}

/** Nodes come grouped by model (models in the order of their GPUs, most first), then as the server sorts them. */
export function readMap(answer: GpuMapAnswer): GpuMapData {
  const nodes = groupedByModel(answer.nodes, answer.models.length);
  const cells: Cell[] = [];
  const firstCell = new Int32Array(nodes.length + 1);
  nodes.forEach((node, at) => {
    firstCell[at] = cells.length;
    for (const [index, state, util, memory, celsius, idleSeconds, slices] of node.gpus) {
      cells.push({ node: at, index, state: STATES[state] ?? "unknown", util, memory, celsius, idleSeconds, slices });
    }
  });
  firstCell[nodes.length] = cells.length;
  return { nodes, teams: answer.teams, models: answer.models, cells, firstCell };
}

function groupedByModel(nodes: readonly MapNode[], models: number): MapNode[] {
  const size = Array.from({ length: models }, () => 0);
  for (const node of nodes) size[node.model] = (size[node.model] ?? 0) + node.gpus.length;
  return nodes.filter((node) => node.gpus.length > 0).toSorted((a, b) => (size[b.model] ?? 0) - (size[a.model] ?? 0) || a.model - b.model);
}

/** Held by somebody: what blue, the teal scale and the team colours are for. */
export const isHeld = (cell: Cell): boolean => cell.slices.length > 0 || cell.state === "allocated" || cell.state === "shared";

/** Held, and observed doing nothing. Below 1 % counts as nothing: drivers report stray samples. */
export const isIdle = (cell: Cell): boolean => isHeld(cell) && cell.util !== null && cell.util < 1;

/** GPUs held per team, whole cards and shares alike, most first. */
export function heldByTeam(map: GpuMapData): { team: number; gpus: number }[] {
  const held = new Map<number, number>();
  for (const cell of map.cells) {
    for (const [team, share] of cell.slices) held.set(team, (held.get(team) ?? 0) + share);
  }
  return [...held].map(([team, gpus]) => ({ team, gpus })).sort((a, b) => b.gpus - a.gpus || a.team - b.team);
}
