// What is a series called, and which colour does it keep? Labels that all series share say nothing and are left out.
import type { ChartSeries } from "../api/types";
import type { Tokens } from "../look/tokens";

/** `gpu-1 · 3` from the labels that differ; all labels if none does. */
export function seriesNames(series: readonly ChartSeries[]): string[] {
  const keys = [...new Set(series.flatMap((s) => Object.keys(s.labels)))];
  const telling = keys.filter((key) => new Set(series.map((s) => s.labels[key])).size > 1);
  const used = telling.length > 0 ? withoutEchoes(telling, series) : keys;
  return series.map((s) => used.map((key) => s.labels[key] ?? "").filter(Boolean).join(" · "));
}

/** Drops a label that only repeats what the ones before already tell apart (a uuid beside node and index). */
function withoutEchoes(keys: readonly string[], series: readonly ChartSeries[]): string[] {
  const order = [...keys].sort((a, b) => rankOf(a) - rankOf(b));
  const kept: string[] = [];
  const groups = (names: readonly string[]) => new Set(series.map((s) => names.map((k) => s.labels[k]).join("\0"))).size;
  for (const key of order) if (groups([...kept, key]) > (kept.length ? groups(kept) : 1)) kept.push(key);
  return kept;
}

const ORDER = ["line", "instance", "node", "gpu", "namespace", "type", "job", "path", "resource", "name"];

function rankOf(key: string): number {
  const rank = ORDER.indexOf(key);
  return rank < 0 ? ORDER.length + (key === "uuid" ? 1 : 0) : rank;
}

/** Colours that mean something win over the order of appearance. */
const MEANT: Readonly<Record<string, keyof Tokens>> = {
  utilization: "teal",
  used: "teal",
  allocated: "blue",
  total: "rest",
  running: "blue",
  pending: "amber",
  succeeded: "rest",
  failed: "red",
};

/** The cluster's own lines carry the label `line`; all others are entities. */
export function colourOf(series: ChartSeries, name: string, colours: EntityColours, tokens: Tokens): string {
  const meant = MEANT[series.labels["line"] ?? ""];
  return meant ? (tokens[meant] as string) : colours.of(name, tokens.series);
}

/** Hands out one colour per entity, the same in all charts of a page, in order of appearance. */
export class EntityColours {
  private readonly rank = new Map<string, number>();

  of(entity: string, colours: readonly string[]): string {
    let rank = this.rank.get(entity);
    if (rank === undefined) {
      rank = this.rank.size;
      this.rank.set(entity, rank);
    }
    return colours[rank % colours.length] as string;
  }
}

/** The value of a series at the sample nearest to `ms`; `null` in a gap or beyond `tolerance`. */
export function valueAt(points: ChartSeries["points"], ms: number, tolerance: number): number | null {
  let low = 0;
  let high = points.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((points[middle]?.[0] ?? 0) < ms) low = middle + 1;
    else high = middle;
  }
  const near = [points[low - 1], points[low]].filter((p) => p !== undefined && Math.abs(p[0] - ms) <= tolerance);
  const best = near.sort((a, b) => Math.abs((a?.[0] ?? 0) - ms) - Math.abs((b?.[0] ?? 0) - ms))[0];
  return best?.[1] ?? null;
}

const FORMULA = /^[=+\-@\t\r]/;

/** One row per time, one column per series. Text that a spreadsheet would run as a formula gets a leading `'`. */
export function chartCsv(names: readonly string[], series: readonly ChartSeries[], unit: string): string {
  const times = [...new Set(series.flatMap((s) => s.points.map((p) => p[0])))].sort((a, b) => a - b);
  const byTime = series.map((s) => new Map(s.points));
  const rows = times.map((ms) => [new Date(ms).toISOString(), ...byTime.map((m) => m.get(ms) ?? "")].join(","));
  const head = ["time", ...names.map((name) => quoted(unit ? `${name} (${unit})` : name))].join(",");
  return `\ufeff${[head, ...rows].join("\r\n")}\r\n`;
}

function quoted(text: string): string {
  const safe = FORMULA.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
