// Where does each cell stand? Nodes flow like words, grouped by model; the largest cell that fits the height wins.
// Pure geometry in CSS pixels: drawing, hit test and arrow keys all read the same arrays.
import type { GpuMapData } from "./cells";

export interface Group {
  readonly model: number;
  readonly y: number;
  readonly nodes: number;
  readonly gpus: number;
}

export interface Layout {
  readonly cell: number;
  readonly gap: number;
  readonly width: number;
  readonly height: number;
  readonly x: Float32Array;
  readonly y: Float32Array;
  readonly nodeX: Float32Array;
  readonly nodeY: Float32Array;
  readonly nodeWidth: Float32Array;
  readonly nodeHeight: Float32Array;
  /** Node names stand above their cells. */
  readonly named: boolean;
  /** Cells carry the card's index. */
  readonly numbered: boolean;
  readonly groups: readonly Group[];
  /** Lines of nodes, all groups together. */
  readonly lines: number;
}

const CELL_SIZES = [96, 84, 74, 64, 58, 52, 47, 43, 40, 37, 34, 30, 26, 22, 18, 16, 14, 12, 10, 8, 7, 6, 5, 4, 3, 2] as const;
const COMFORTABLE = 22;
const GROUP_HEAD = 22;
const GROUP_GAP = 16;
const NAME_HEIGHT = 18;
const NAMED_FROM = 14;
const NAMED_WIDTH_MIN = 96;
const NUMBERED_FROM = 22;
/** Smaller cells stand in two rows a node, so that a node is a block and not a thread. */
const TWO_ROWS_BELOW = 12;
const ROW_MAX = 8;

/** Sizes to which a large map can be enlarged; the box scrolls then. */
const ZOOM_SIZES = [4, 6, 8, 12, 18, 26] as const;
/** Canvases are no higher; a screen may have two pixels to one of CSS. */
const HEIGHT_MOST = 15_000;

/** The sizes above the one that fits that can still be drawn, the smallest first. */
export function zoomSizes(map: GpuMapData, width: number, fitting: number): readonly number[] {
  const runs = runsOf(map);
  return ZOOM_SIZES.filter((size) => size > fitting && planFor(runs, width, size).height <= HEIGHT_MOST);
}

/** A notch of a wheel turns by about 100, a pinch by a few at a time. */
const NOTCH = 50;

/** How far a wheel has to turn for the next size: what is left of the turn, and one size larger (1), smaller (-1) or none (0). */
export function wheelStep(turned: number, by: number): { rest: number; step: 1 | -1 | 0 } {
  const sum = Math.sign(turned) === -Math.sign(by) ? by : turned + by;
  if (Math.abs(sum) < NOTCH) return { rest: sum, step: 0 };
  return { rest: 0, step: sum < 0 ? 1 : -1 };
}

/** The largest cells that fit. Among comfortable sizes fewer lines win, so that no node stands alone in the last one. */
export function layOut(map: GpuMapData, width: number, heightMax: number): Layout {
  const runs = runsOf(map);
  let best: Plan | null = null;
  for (const size of CELL_SIZES) {
    if (best && size < COMFORTABLE) break;
    const plan = planFor(runs, width, size);
    if (plan.height <= heightMax && (!best || plan.lines < best.lines)) best = plan;
  }
  return placeCells(map, width, best ?? planFor(runs, width, CELL_SIZES[CELL_SIZES.length - 1] as number));
}

/** Positions for one size of cell. */
export function place(map: GpuMapData, width: number, cell: number): Layout {
  return placeCells(map, width, planFor(runsOf(map), width, cell));
}

/** Neighbouring nodes of one model. */
interface Run {
  readonly model: number;
  readonly start: number;
  readonly end: number;
  readonly gpus: number;
  /** The most cards of one node. */
  readonly most: number;
}

function runsOf(map: GpuMapData): Run[] {
  const runs: Run[] = [];
  for (let start = 0; start < map.nodes.length; ) {
    const model = map.nodes[start]?.model ?? 0;
    let end = start;
    while (end < map.nodes.length && map.nodes[end]?.model === model) end += 1;
    runs.push({ model, start, end, gpus: (map.firstCell[end] ?? 0) - (map.firstCell[start] ?? 0), most: largestNode(map, start, end) });
    start = end;
  }
  return runs;
}

interface PlannedRun extends Run {
  readonly top: number;
  readonly columns: number;
  readonly perLine: number;
  readonly blockWidth: number;
  readonly blockHeight: number;
}

interface Plan {
  readonly cell: number;
  readonly gap: number;
  readonly nodeGap: number;
  readonly rowGap: number;
  readonly head: number;
  readonly runs: readonly PlannedRun[];
  readonly height: number;
  readonly lines: number;
}

/** The sizes of everything for one size of cell, without placing a single one. */
function planFor(runs: readonly Run[], width: number, cell: number): Plan {
  const gap = cell >= 14 ? 3 : cell >= 8 ? 2 : cell >= 5 ? 1 : 0;
  const nodeGap = cell >= 14 ? 18 : cell >= 8 ? 8 : cell >= 5 ? 4 : 2;
  const rowGap = cell >= 14 ? 12 : nodeGap;
  const head = cell >= NAMED_FROM ? NAME_HEIGHT : 0;
  const planned: PlannedRun[] = [];
  let top = 0;
  let lines = 0;
  for (const run of runs) {
    const columns = columnsOf(run.most, cell);
    const blockWidth = Math.max(head ? NAMED_WIDTH_MIN : 0, columns * (cell + gap) - gap);
    const blockHeight = head + Math.ceil(run.most / columns) * (cell + gap) - gap;
    const perLine = Math.max(1, Math.floor((width + nodeGap) / (blockWidth + nodeGap)));
    const own = Math.ceil((run.end - run.start) / perLine);
    planned.push({ ...run, top, columns, perLine, blockWidth, blockHeight });
    lines += own;
    top += GROUP_HEAD + own * (blockHeight + rowGap) - rowGap + GROUP_GAP;
  }
  return { cell, gap, nodeGap, rowGap, head, runs: planned, height: Math.max(0, top - GROUP_GAP), lines };
}

function placeCells(map: GpuMapData, width: number, plan: Plan): Layout {
  const { cell, gap, head } = plan;
  const x = new Float32Array(map.cells.length);
  const y = new Float32Array(map.cells.length);
  const nodeX = new Float32Array(map.nodes.length);
  const nodeY = new Float32Array(map.nodes.length);
  const nodeWidth = new Float32Array(map.nodes.length);
  const nodeHeight = new Float32Array(map.nodes.length);
  for (const run of plan.runs) {
    for (let node = run.start; node < run.end; node += 1) {
      const rank = node - run.start;
      const left = (rank % run.perLine) * (run.blockWidth + plan.nodeGap);
      const up = run.top + GROUP_HEAD + Math.floor(rank / run.perLine) * (run.blockHeight + plan.rowGap);
      nodeX[node] = left;
      nodeY[node] = up;
      nodeWidth[node] = run.blockWidth;
      nodeHeight[node] = run.blockHeight;
      const first = map.firstCell[node] ?? 0;
      for (let i = first; i < (map.firstCell[node + 1] ?? first); i += 1) {
        x[i] = left + ((i - first) % run.columns) * (cell + gap);
        y[i] = up + head + Math.floor((i - first) / run.columns) * (cell + gap);
      }
    }
  }
  const groups = plan.runs.map((run) => ({ model: run.model, y: run.top, nodes: run.end - run.start, gpus: run.gpus }));
  return { cell, gap, width, height: plan.height, x, y, nodeX, nodeY, nodeWidth, nodeHeight, named: head > 0, numbered: cell >= NUMBERED_FROM, groups, lines: plan.lines };
}

function largestNode(map: GpuMapData, start: number, end: number): number {
  let most = 1;
  for (let node = start; node < end; node += 1) most = Math.max(most, (map.firstCell[node + 1] ?? 0) - (map.firstCell[node] ?? 0));
  return most;
}

function columnsOf(gpus: number, cell: number): number {
  return cell < TWO_ROWS_BELOW && gpus > 2 ? Math.min(ROW_MAX, Math.ceil(gpus / 2)) : Math.min(ROW_MAX, gpus);
}

/** The cell under a point (gaps belong to the cell before them), or the first cell of a node whose name is there; -1 for neither. */
export function cellAt(map: GpuMapData, layout: Layout, px: number, py: number): number {
  const node = nodeAt(layout, px, py);
  if (node < 0) return -1;
  const first = map.firstCell[node] ?? 0;
  const end = map.firstCell[node + 1] ?? first;
  const pitch = layout.cell + layout.gap;
  for (let i = first; i < end; i += 1) {
    if (px >= (layout.x[i] ?? 0) && px < (layout.x[i] ?? 0) + pitch && py >= (layout.y[i] ?? 0) && py < (layout.y[i] ?? 0) + pitch) return i;
  }
  return layout.named && py < (layout.nodeY[node] ?? 0) + NAME_HEIGHT ? first : -1;
}

/** Nodes stand in reading order, so the line is found by bisection and the node by a walk along it. */
function nodeAt(layout: Layout, px: number, py: number): number {
  const { nodeX, nodeY, nodeWidth, nodeHeight, gap } = layout;
  let low = 0;
  let high = nodeY.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((nodeY[middle] ?? 0) + (nodeHeight[middle] ?? 0) + gap <= py) low = middle + 1;
    else high = middle;
  }
  for (let node = low; node < nodeY.length && (nodeY[node] ?? 0) <= py; node += 1) {
    const left = nodeX[node] ?? 0;
    if (px >= left && px < left + (nodeWidth[node] ?? 0) + gap) return node;
  }
  return -1;
}

export type Arrow = "ArrowLeft" | "ArrowRight" | "ArrowUp" | "ArrowDown";

/** The rows of cells as a grid has them: of each cell its row, and where each row begins in `order`. */
export interface Rows {
  readonly order: Int32Array;
  readonly starts: readonly number[];
  readonly rowOf: Int32Array;
}

/** Cells in reading order: line by line from above, from the left. */
export function rowsOf(layout: Layout): Rows {
  const order = Int32Array.from(layout.x.keys()).sort((a, b) => (layout.y[a] ?? 0) - (layout.y[b] ?? 0) || (layout.x[a] ?? 0) - (layout.x[b] ?? 0));
  const rowOf = new Int32Array(order.length);
  const starts: number[] = [];
  order.forEach((cell, place) => {
    if (place === 0 || layout.y[cell] !== layout.y[order[place - 1] as number]) starts.push(place);
    rowOf[cell] = starts.length - 1;
  });
  return { order, starts, rowOf };
}

const ROWS_A_PAGE = 10;

/** Where Home, End, PageUp and PageDown lead, as in any grid: Home and End along the row, with Ctrl to the first and the last cell. -1: the key is none of them. */
export function leap(rows: Rows, from: number, key: string, ctrl: boolean): number {
  const { order, starts, rowOf } = rows;
  const row = rowOf[from] ?? 0;
  const endOf = (each: number) => (starts[each + 1] ?? order.length) - 1;
  const at = (place: number): number => order[place] ?? from;
  if (key === "Home") return at(ctrl ? 0 : (starts[row] ?? 0));
  if (key === "End") return at(ctrl ? order.length - 1 : endOf(row));
  if (key !== "PageUp" && key !== "PageDown") return -1;
  const target = Math.min(starts.length - 1, Math.max(0, row + (key === "PageUp" ? -ROWS_A_PAGE : ROWS_A_PAGE)));
  const column = order.indexOf(from) - (starts[row] ?? 0);
  return at(Math.min((starts[target] ?? 0) + column, endOf(target)));
}

/** The cell an arrow key leads to. Left and right run through all cells; up and down go to the nearest cell of another line. */
export function neighbour(layout: Layout, from: number, arrow: Arrow): number {
  const last = layout.x.length - 1;
  if (arrow === "ArrowLeft") return Math.max(0, from - 1);
  if (arrow === "ArrowRight") return Math.min(last, from + 1);
  const step = arrow === "ArrowUp" ? -1 : 1;
  const y = layout.y[from] ?? 0;
  let best = from;
  let bestScore = Number.POSITIVE_INFINITY;
  for (let i = 0; i <= last; i += 1) {
    const dy = ((layout.y[i] ?? 0) - y) * step;
    if (dy <= 0) continue;
    const score = dy * 4 + Math.abs((layout.x[i] ?? 0) - (layout.x[from] ?? 0));
    if (score < bestScore) {
      bestScore = score;
      best = i;
    }
  }
  return best;
}
