// How many cells bear each mark of the legend? A card that reports while nobody knows its holder is not "without reading", and the other way round.
import { type Cell, type GpuMapData, isIdle } from "./cells";

export interface MarkCounts {
  readonly free: number;
  readonly idle: number;
  readonly broken: number;
  readonly draining: number;
  /** Not free, not broken, and no utilization: nobody reports it. */
  readonly noReading: number;
  /** Somebody may hold it; nobody says who. */
  readonly holderUnknown: number;
}

const isSilent = (cell: Cell): boolean => cell.util === null && cell.state !== "free" && cell.state !== "unhealthy";

export function countMarks(map: GpuMapData): MarkCounts {
  const number = (is: (cell: Cell) => boolean) => map.cells.reduce((n, cell) => n + (is(cell) ? 1 : 0), 0);
  return {
    free: number((c) => c.state === "free"),
    idle: number(isIdle),
    broken: number((c) => c.state === "unhealthy"),
    draining: number((c) => c.state === "draining"),
    noReading: number(isSilent),
    holderUnknown: number((c) => c.state === "unknown"),
  };
}
