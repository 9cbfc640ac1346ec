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

export function countMarks(map: GpuMapData): MarkCounts {
  const number = (is: (cell: Cell) => boolean) => map.cells.reduce((n, cell) => n + (is(cell) ? 1 : 0), 0);
  return {
    held: number((c) => c.state === "allocated" || c.state === "shared"),
    free: number((c) => c.state === "free"),
    closed: number((c) => c.state === "closed"),
    unreachable: number((c) => c.state === "unreachable"),
    idle: number(isIdle),
    broken: number((c) => c.state === "unhealthy"),
    draining: number((c) => c.state === "draining"),
    noReading: number(isSilent),
    holderUnknown: number((c) => c.state === "unknown"),
  };
}
