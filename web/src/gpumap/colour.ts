// What colour has a cell? One paint per slice: a fill, and how the edge is drawn. Free is an outline; held at 0 % is filled, and blue.
import { ramp } from "../look/scale";
import type { Tokens } from "../look/tokens";
import { type Cell, type GpuMapData, heldByTeam, isHeld, isSplit } from "./cells";

export const COLOUR_BY = ["util", "memory", "team", "temperature", "idle"] as const;
export type ColourBy = (typeof COLOUR_BY)[number];

export const IDLE_FULL_SECONDS = 3600;
export const HEAT_RANGE = [30, 90] as const;

export interface Palette {
  readonly teal: readonly string[];
  readonly heat: readonly string[];
  readonly amber: readonly string[];
  /** Colour by team number; teams beyond the eight largest share one grey. */
  readonly teams: readonly string[];
  readonly tokens: Tokens;
}

export function paletteOf(tokens: Tokens, map: GpuMapData): Palette {
  const teams = map.teams.map(() => tokens.rest);
  heldByTeam(map)
    .slice(0, tokens.series.length)
    .forEach(({ team }, rank) => {
      teams[team] = tokens.series[rank] ?? tokens.rest;
    });
  return { teal: ramp(tokens.scaleTeal), heat: ramp(tokens.scaleHeat), amber: ramp(tokens.scaleAmber), teams, tokens };
}

/** `null` = nothing to fill: free, or nothing known. */
export function fillOf(cell: Cell, by: ColourBy, palette: Palette, team: number | null): string | null {
  if (by === "temperature") return cell.celsius === null ? null : onScale(palette.heat, (cell.celsius - HEAT_RANGE[0]) / (HEAT_RANGE[1] - HEAT_RANGE[0]));
  if (!isHeld(cell)) return null;
  switch (by) {
    case "team":
      return team === null ? palette.tokens.rest : (palette.teams[team] ?? palette.tokens.rest);
    case "idle":
      return cell.idleSeconds ? onScale(palette.amber, cell.idleSeconds / IDLE_FULL_SECONDS) : palette.tokens.track;
    case "util":
      return busy(cell.util, palette);
    case "memory":
      return busy(cell.memory, palette);
  }
}

/** Nothing observed but held: a pale blue, off the teal scale, so that "allocated but idle" is seen at a glance. */
function busy(percent: number | null, palette: Palette): string | null {
  if (percent === null) return null;
  return percent < 1 ? palette.tokens.idleFill : onScale(palette.teal, percent / 100);
}

export function onScale(scale: readonly string[], share: number): string {
  const at = Math.round(Math.min(1, Math.max(0, share)) * (scale.length - 1));
  return scale[at] as string;
}

export type Edge = "none" | "free" | "held" | "unknown" | "broken" | "closed" | "unreachable";

/** How the edge is drawn; a filled cell needs none, except if the fill is so pale that the edge must show "held". */
export function edgeOf(cell: Cell, fill: string | null, palette: Palette, touching = false): Edge {
  if (cell.state === "unhealthy") return "broken";
  if (cell.state === "unreachable" || cell.state === "closed") return cell.state;
  if (fill === palette.tokens.idleFill || fill === palette.tokens.track) return "held";
  if (fill !== null && (!isSplit(cell) || touching)) return "none";
  if (cell.state === "unknown") return "unknown";
  return isHeld(cell) ? "held" : "free";
}
