// Number of cells per mark of the legend. Each cell has one state, so states add up to all; "0 %" and "no reading" are additional marks.
import { type Cell, type CellState, type GpuMapData, isIdle } from "./cells";

export interface MarkCounts {
  readonly held: number;
  readonly free: number;
  /** Of the held ones, observed doing nothing. */
  readonly idle: number;
  readonly broken: number;
  readonly draining: number;
  /** Without a holder, on a node that accepts no pods. */
  readonly closed: number;
  /** Its node has fallen silent. */
  readonly unreachable: number;
  /** A reading is missing where there should be one. */
  readonly noReading: number;
  /** It may have a holder, which is unknown. */
  readonly holderUnknown: number;
}

const OWES_NONE: ReadonlySet<CellState> = new Set<CellState>(["free", "closed", "unhealthy", "unreachable"]);
const isSilent = (cell: Cell): boolean => cell.util === null && !OWES_NONE.has(cell.state);

export type Mark = keyof MarkCounts;

/** The cells with a mark, for the legend's counts and for the cells that it highlights. */
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

const TEAM = "team:";
/** What of the legend is lit: a mark, or a team as `team:NAME`. */
export type Lit = Mark | `team:${string}`;

export const isLit = (text: string | null): text is Lit => isMark(text) || (text !== null && text.startsWith(TEAM) && text.length > TEAM.length);
export const litTeam = (team: string): Lit => `${TEAM}${team}`;

/** The cells that it lights up; all where nothing is lit. */
export function litCells(lit: Lit | null, map: Pick<GpuMapData, "teams">): (cell: Cell) => boolean {
  if (lit === null) return () => true;
  if (isMark(lit)) return BEARS[lit];
  const team = map.teams.indexOf(lit.slice(TEAM.length));
  return (cell) => cell.slices.some(([each]) => each === team);
}

export function countMarks(map: GpuMapData): MarkCounts {
  const number = (mark: Mark) => map.cells.reduce((n, cell) => n + (BEARS[mark](cell) ? 1 : 0), 0);
  return Object.fromEntries((Object.keys(BEARS) as Mark[]).map((mark) => [mark, number(mark)])) as unknown as MarkCounts;
}
