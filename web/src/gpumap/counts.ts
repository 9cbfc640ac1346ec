// How many cells bear each mark of the legend? Each cell has one state, so those add up to all; "0 %" and "no reading" are said of some of them beside it.
import { type Cell, type CellState, type GpuMapData, isIdle } from "./cells";

export interface MarkCounts {
  readonly held: number;
  readonly free: number;
  /** Of the held ones, observed doing nothing. */
  readonly idle: number;
  readonly broken: number;
  readonly draining: number;
  /** Held by nobody, on a node that takes no pods. */
  readonly closed: number;
  /** Its node has fallen silent. */
  readonly unreachable: number;
  /** A reading is missing where there should be one. */
  readonly noReading: number;
  /** Somebody may hold it; nobody says who. */
  readonly holderUnknown: number;
}

const OWES_NONE: ReadonlySet<CellState> = new Set<CellState>(["free", "closed", "unhealthy", "unreachable"]);
const isSilent = (cell: Cell): boolean => cell.util === null && !OWES_NONE.has(cell.state);

export type Mark = keyof MarkCounts;

/** Which cells bear a mark: the one answer for the legend's counts and for the cells that it lights up. */
export const BEARS: Readonly<Record<Mark, (cell: Cell) => boolean>> = {
  held: (c) => c.state === "allocated" || c.state === "shared",
  free: (c) => c.state === "free",
  closed: (c) => c.state === "closed",
  unreachable: (c) => c.state === "unreachable",
  idle: isIdle,
  broken: (c) => c.state === "unhealthy",
  draining: (c) => c.state === "draining",
  noReading: isSilent,
  holderUnknown: (c) => c.state === "unknown",
};

export const isMark = (text: string | null): text is Mark => text !== null && Object.hasOwn(BEARS, text);

export function countMarks(map: GpuMapData): MarkCounts {
  const number = (mark: Mark) => map.cells.reduce((n, cell) => n + (BEARS[mark](cell) ? 1 : 0), 0);
  return Object.fromEntries((Object.keys(BEARS) as Mark[]).map((mark) => [mark, number(mark)])) as unknown as MarkCounts;
}
