// Paints the map on a canvas: once per answer, size, theme or colour switch, never for a hover (that has its own layer).
import type { Cell, GpuMapData } from "./cells";
import { isHeld, isSplit } from "./cells";
import { type ColourBy, type Edge, edgeOf, fillOf, type Palette } from "./colour";
import { type Focus, isCardInFocus, isNodeInFocus } from "./focus";
import type { Layout } from "./layout";

export interface Picture {
  readonly map: GpuMapData;
  readonly layout: Layout;
  readonly palette: Palette;
  readonly by: ColourBy;
  /** Cells outside it are drawn faintly. */
  readonly focus: Focus;
  /** Those that the legend lights up; the others are drawn faintly, too. */
  readonly isLit: (cell: Cell) => boolean;
  readonly statusWord: (status: string) => string;
  readonly groupTitle: (model: number, nodes: number, gpus: number) => string;
}

const FAINT = 0.22;
const SANS = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'Noto Sans CJK SC', sans-serif";
const MONO = "ui-monospace, Menlo, Consolas, 'Liberation Mono', monospace";

export function draw(canvas: HTMLCanvasElement, picture: Picture): void {
  const context = prepare(canvas, picture.layout.width, picture.layout.height);
  if (!context) return;
  drawGroups(context, picture);
  const { map, layout, focus } = picture;
  const hatch = { broken: hatchOf(context, picture.palette.tokens.red), unknown: hatchOf(context, picture.palette.tokens.unknownLine) };
  map.nodes.forEach((node, at) => {
    context.globalAlpha = isNodeInFocus(focus, node.name) ? 1 : FAINT;
    if (layout.gap === 0) drawPlate(context, picture, at);
    if (!layout.named && (node.cordoned || node.status !== "Ready")) drawUnder(context, picture, node.cordoned, at);
    if (layout.named) drawName(context, picture, node.name, node.status, at);
    for (let i = map.firstCell[at] ?? 0; i < (map.firstCell[at + 1] ?? 0); i += 1) {
      const cell = map.cells[i] as Cell;
      context.globalAlpha = isCardInFocus(focus, node.name, cell.index) && picture.isLit(cell) ? 1 : FAINT;
      drawCell(context, picture, cell, i, hatch);
      if (node.cordoned && cell.state !== "closed" && cell.state !== "unhealthy" && layout.gap > 0) drawBar(context, picture, i);
    }
  });
  context.globalAlpha = 1;
}

/** Sizes the canvas for the screen's pixels and clears it. */
function prepare(canvas: HTMLCanvasElement, width: number, height: number): CanvasRenderingContext2D | null {
  const ratio = globalThis.devicePixelRatio || 1;
  canvas.width = Math.max(1, Math.round(width * ratio));
  canvas.height = Math.max(1, Math.round(height * ratio));
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d");
  context?.setTransform(ratio, 0, 0, ratio, 0, 0);
  return context;
}

function drawGroups(context: CanvasRenderingContext2D, { layout, palette, groupTitle }: Picture): void {
  context.font = `12px ${SANS}`;
  context.textBaseline = "middle";
  context.fillStyle = palette.tokens.text2;
  for (const group of layout.groups) context.fillText(groupTitle(group.model, group.nodes, group.gpus), 0, group.y + 8, layout.width);
}

function drawName(context: CanvasRenderingContext2D, { layout, palette, statusWord }: Picture, name: string, status: string, at: number): void {
  const x = layout.nodeX[at] ?? 0;
  const y = (layout.nodeY[at] ?? 0) + 7;
  const room = layout.nodeWidth[at] ?? 0;
  const ready = status === "Ready";
  context.font = `11px ${MONO}`;
  context.fillStyle = ready ? palette.tokens.text2 : palette.tokens.red;
  context.fillText(clipped(context, ready ? name : `${name} ${statusWord(status)}`, room), x, y);
}

/** Cells that touch stand on a plate: what shows of it is free. */
function drawPlate(context: CanvasRenderingContext2D, { layout, palette }: Picture, at: number): void {
  context.fillStyle = palette.tokens.track;
  context.fillRect(layout.nodeX[at] ?? 0, layout.nodeY[at] ?? 0, layout.nodeWidth[at] ?? 0, layout.nodeHeight[at] ?? 0);
}

/** Nodes too small for names: a line below a cordoned one, dots below one that is unreachable or not ready. */
function drawUnder(context: CanvasRenderingContext2D, { layout, palette }: Picture, cordoned: boolean, at: number): void {
  const x = layout.nodeX[at] ?? 0;
  const y = (layout.nodeY[at] ?? 0) + (layout.nodeHeight[at] ?? 0) + 1;
  context.strokeStyle = cordoned ? palette.tokens.text2 : palette.tokens.red;
  context.lineWidth = 1;
  context.setLineDash(cordoned ? [] : [1, 2]);
  context.beginPath();
  context.moveTo(x, y - 0.5);
  context.lineTo(x + (layout.nodeWidth[at] ?? 0), y - 0.5);
  context.stroke();
  context.setLineDash([]);
}

/** The bar of a cordoned node, at the foot of a card with a holder. */
function drawBar(context: CanvasRenderingContext2D, { layout, palette }: Picture, i: number): void {
  const size = layout.cell;
  const [x, y, thick] = [layout.x[i] ?? 0, layout.y[i] ?? 0, size >= 14 ? 2 : 1];
  context.fillStyle = palette.tokens.surface;
  context.fillRect(x + size / 4 - 1, y + size - 3 - thick, size / 2 + 2, thick + 2);
  context.fillStyle = palette.tokens.text;
  context.fillRect(x + size / 4, y + size - 2 - thick, size / 2, thick);
}

/** The text in `room` pixels: what is left out is left out in the middle, for names of nodes differ at their ends. */
export function clipped(context: Pick<CanvasRenderingContext2D, "measureText">, text: string, room: number): string {
  if (context.measureText(text).width <= room) return text;
  const letters = [...text];
  let kept = letters.length - 1;
  const cut = () => `${letters.slice(0, Math.floor(kept / 3)).join("")}…${letters.slice(letters.length - Math.ceil((2 * kept) / 3)).join("")}`;
  while (kept > 1 && context.measureText(cut()).width > room) kept -= 1;
  return cut();
}

type Hatch = Readonly<Record<"broken" | "unknown", CanvasPattern | string>>;

function drawCell(context: CanvasRenderingContext2D, { layout, palette, by }: Picture, cell: Cell, i: number, hatch: Hatch): void {
  const x = layout.x[i] ?? 0;
  const y = layout.y[i] ?? 0;
  const size = layout.cell;
  const fill = drawFill(context, palette, by, cell, x, y, size);
  const edge = edgeOf(cell, fill, palette, layout.gap === 0);
  if (layout.gap > 0 && (edge === "broken" || edge === "unknown")) {
    context.fillStyle = hatch[edge];
    context.fillRect(x, y, size, size);
  }
  if (edge !== "none") {
    const t = palette.tokens;
    context.strokeStyle = { free: t.free, closed: t.free, held: t.idleLine, unknown: t.unknownLine, unreachable: t.unknownLine, broken: t.red }[edge];
    context.lineWidth = 1;
    if (layout.gap > 0) drawEdge(context, edge, x, y, size);
    else if (edge !== "free") fillTouching(context, edge, context.strokeStyle, x, y, size);
  }
  if (cell.state === "draining" && layout.gap > 0) drawDot(context, palette.tokens.text, palette.tokens.surface, x, y, size);
  if (layout.numbered) drawIndex(context, palette, cell, fill, x, y, size);
}

/** Dashes: unreachable. A bar across: no entry. */
function drawEdge(context: CanvasRenderingContext2D, edge: Edge, x: number, y: number, size: number): void {
  context.setLineDash(edge === "unreachable" ? [2, 2] : []);
  context.strokeRect(x + 0.5, y + 0.5, size - 1, size - 1);
  context.setLineDash([]);
  if (edge !== "closed") return;
  context.fillStyle = context.strokeStyle;
  context.fillRect(x + size / 4, y + size / 2 - 1, size / 2, 2);
}

/** No room for an outline: the colour of the edge fills the cell, or a part of it, so that it is visible without colour: broken whole, the others by half. */
function fillTouching(context: CanvasRenderingContext2D, edge: Edge, colour: string | CanvasGradient | CanvasPattern, x: number, y: number, size: number): void {
  const [left, top, width, height] = touching(edge, size);
  context.fillStyle = colour;
  context.fillRect(x + left, y + top, width, height);
}

/** Which part of a cell without outline its mark fills: left, top, width and height. */
export function touching(edge: Edge, size: number): readonly [left: number, top: number, width: number, height: number] {
  const half = Math.max(1, Math.floor(size / 2));
  if (edge === "closed") return [0, half, size, 1];
  if (edge === "unreachable") return [0, 0, size, half];
  return edge === "unknown" ? [0, 0, half, size] : [0, 0, size, size];
}

/** What a cell's width stands for: the card, or more where more was granted than there is (and where shares were rounded up). */
export const wholeOf = (cell: Pick<Cell, "slices">): number => Math.max(1, cell.slices.reduce((sum, [, share]) => sum + share, 0));

/** Fills a cell, or each slice of a shared one in proportion to its memory; the free share stays open. */
function drawFill(context: CanvasRenderingContext2D, palette: Palette, by: ColourBy, cell: Cell, x: number, y: number, size: number): string | null {
  if (by === "temperature" || !isSplit(cell)) {
    const fill = fillOf(cell, by, palette, cell.slices[0]?.[0] ?? null);
    if (fill !== null) {
      context.fillStyle = fill;
      context.fillRect(x, y, size, size);
    }
    return fill;
  }
  let left = x;
  let last: string | null = null;
  const whole = wholeOf(cell);
  cell.slices.forEach(([team, share], rank) => {
    const width = (share / whole) * size;
    last = fillOf(cell, by, palette, team);
    if (last !== null) {
      context.fillStyle = last;
      context.fillRect(left, y, Math.max(0.5, width - (rank < cell.slices.length - 1 && size >= 8 ? 1 : 0)), size);
    }
    left += width;
  });
  return last;
}

function drawDot(context: CanvasRenderingContext2D, colour: string, ring: string, x: number, y: number, size: number): void {
  context.beginPath();
  context.arc(x + size / 2, y + size / 2, Math.max(1, size / 7), 0, 2 * Math.PI);
  context.lineWidth = Math.max(1, size / 12);
  context.strokeStyle = ring;
  context.stroke();
  context.fillStyle = colour;
  context.fill();
}

function drawIndex(context: CanvasRenderingContext2D, palette: Palette, cell: Cell, fill: string | null, x: number, y: number, size: number): void {
  context.font = `10px ${SANS}`;
  context.textAlign = "left";
  const text = String(cell.index);
  const patterned = isSplit(cell) || cell.state === "unhealthy" || cell.state === "unknown";
  if (patterned) {
    context.fillStyle = palette.tokens.surface;
    context.fillRect(x + 1, y + size - 14, context.measureText(text).width + 5, 13);
  }
  context.fillStyle = fill !== null && isHeld(cell) && !patterned ? inkOn(fill) : palette.tokens.text2;
  context.fillText(text, x + 4, y + size - 7);
}

/** Black or white, whichever reads better on a fill. */
export function inkOn(fill: string): string {
  const part = (at: number) => Number.parseInt(fill.slice(at, at + 2), 16);
  return 0.299 * part(1) + 0.587 * part(3) + 0.114 * part(5) > 140 ? "#10201e" : "#ffffff";
}

const HATCH_PITCH = 5;

function hatchOf(context: CanvasRenderingContext2D, colour: string): CanvasPattern | string {
  const ratio = globalThis.devicePixelRatio || 1;
  const tile = document.createElement("canvas");
  const side = Math.round(HATCH_PITCH * ratio);
  tile.width = side;
  tile.height = side;
  const pen = tile.getContext("2d");
  if (!pen) return colour;
  pen.strokeStyle = colour;
  pen.lineWidth = ratio * 1.2;
  pen.beginPath();
  for (const shift of [-side, 0, side]) {
    pen.moveTo(shift, side);
    pen.lineTo(shift + side, 0);
  }
  pen.stroke();
  const pattern = context.createPattern(tile, "repeat");
  pattern?.setTransform(new DOMMatrix().scale(1 / ratio));
  return pattern ?? colour;
}
