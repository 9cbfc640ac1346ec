// What is a series called, which colour does it keep, and what was its value when?
import type { ChartSeries } from "../api/types";
import type { Tokens } from "../look/tokens";

/** What each line is called. The same entity has the same name, and so the same colour, in every chart of a page. */
export function seriesNames(series: readonly ChartSeries[]): string[] {
  const names = series.map((s) => entityName(s.labels));
  const twice = names.filter((name, i) => names.indexOf(name) !== i);
  return names.map((name, i) => (twice.includes(name) ? Object.values(series[i]?.labels ?? {}).filter(Boolean).join(" · ") : name));
}

function entityName(labels: ChartSeries["labels"]): string {
  const { line, instance, node, gpu, namespace, job, path, resource } = labels;
  if (line) return line;
  if (instance) return instance;
  if (node && gpu) return `${node} · ${gpu}`;
  if (job) return namespace ? `${namespace}/${job}` : job;
  if (path && resource) return `${path} · ${resource}`;
  return node ?? Object.values(labels).filter(Boolean).join(" · ");
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

/** The time of the earliest value of all series. */
export function firstSample(series: readonly ChartSeries[]): number | null {
  const times = series.flatMap((s) => s.points.find((p) => p[1] !== null)?.[0] ?? []);
  return times.length > 0 ? Math.min(...times) : null;
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
