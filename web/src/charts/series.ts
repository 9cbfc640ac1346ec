// What is a series called, which colour and stroke does it keep, and what was its value when?
import { csvOf, quoted } from "../format/csv";
import type { ChartSeries } from "../api/types";
import { shown } from "../format/shown";
import type { Tokens } from "../look/tokens";

/** What each line is called. The same entity has the same name, and so the same colour, in every chart of a page. */
export function seriesNames(series: readonly ChartSeries[]): string[] {
  const names = series.map((s) => shown(entityName(s.labels)));
  const twice = names.filter((name, i) => names.indexOf(name) !== i);
  return names.map((name, i) => (twice.includes(name) ? shown(fullName(series[i]?.labels ?? {})) : name));
}

/** Of entities of one name. A pod's lines differ in container and card. */
function fullName(labels: ChartSeries["labels"]): string {
  const { namespace, pod, container, gpu } = labels;
  const words = pod ? [namespace ? `${namespace}/${pod}` : pod, container, gpu] : Object.values(labels);
  return words.filter(Boolean).join(" · ");
}

function entityName(labels: ChartSeries["labels"]): string {
  const { line, instance, node, gpu, direction, reason, xid, severity, cause, namespace, pod, job, path, resource } = labels;
  if (line) return line;
  if (instance) return instance;
  if (pod) return namespace ? `${namespace}/${pod}` : pod;
  const what = direction ?? reason ?? (xid && `XID ${xid}`) ?? severity ?? cause;
  if (node && gpu && what) return `${node} · ${gpu} · ${what}`;
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

/** How a line is drawn. Eight hues, each solid or dashed: sixteen lines of a chart can be distinguished. */
export interface LineStyle {
  readonly colour: string;
  readonly dashed: boolean;
}

/** One style per line: distinct within the chart; an entity has the same hue in every chart of a page. */
export function lineStyles(series: readonly ChartSeries[], names: readonly string[], styles: EntityStyles, tokens: Tokens): LineStyle[] {
  const used = new Set<number>();
  return series.map((one, i) => {
    const meant = MEANT[one.labels["line"] ?? ""];
    return meant ? { colour: tokens[meant] as string, dashed: false } : styles.of(names[i] ?? "", tokens.series, used);
  });
}

/** Remembers which entity has which hue. A line is dashed only where another of its chart has its hue already; legend and label show the dashes. */
export class EntityStyles {
  private readonly hue = new Map<string, number>();

  /** The entity's hue, solid; where a line of the chart (`used`) has that already, dashed; else whatever is free. `used` grows by the choice. */
  of(entity: string, colours: readonly string[], used: Set<number> = new Set()): LineStyle {
    const hues = colours.length;
    const own = this.hue.get(entity) ?? this.leastUsed(hues, used);
    this.hue.set(entity, own);
    const styles = [own, own + hues, ...Array.from({ length: 2 * hues }, (_, style) => style)];
    const style = styles.find((each) => !used.has(each)) ?? own;
    used.add(style);
    return { colour: colours[style % hues] as string, dashed: style >= hues };
  }

  private leastUsed(hues: number, used: ReadonlySet<number>): number {
    const taken = Array.from({ length: hues }, (_, hue) => (used.has(hue) ? this.hue.size : 0));
    for (const hue of this.hue.values()) taken[hue] = (taken[hue] ?? 0) + 1;
    return taken.indexOf(Math.min(...taken));
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

/** Seconds between samples as they came: never less than `stepSeconds`, more where the source keeps fewer. */
export function ownStep(series: readonly ChartSeries[], stepSeconds: number): number {
  const gaps = series.flatMap((s) => s.points.slice(1).map((point, i) => (point[0] - (s.points[i]?.[0] ?? 0)) / 1000)).filter((gap) => gap > 0);
  return gaps.length === 0 ? stepSeconds : Math.max(stepSeconds, gaps.reduce((least, gap) => Math.min(least, gap)));
}

/** One row per time, one column per series. Text that a spreadsheet would run as a formula gets a leading `'`. */
export function chartCsv(names: readonly string[], series: readonly ChartSeries[], unit: string): string {
  const times = [...new Set(series.flatMap((s) => s.points.map((p) => p[0])))].sort((a, b) => a - b);
  const byTime = series.map((s) => new Map(s.points));
  const rows = times.map((ms) => [new Date(ms).toISOString(), ...byTime.map((m) => String(m.get(ms) ?? ""))]);
  return csvOf([["time", ...names.map((name) => quoted(unit ? `${name} (${unit})` : name))], ...rows]);
}
