// What is a series called, which colour and stroke does it keep, and what was its value when?
import type { ChartSeries } from "../api/types";
import { shown } from "../format/shown";
import type { Tokens } from "../look/tokens";

/** What each line is called. The same entity has the same name, and so the same colour, in every chart of a page. */
export function seriesNames(series: readonly ChartSeries[]): string[] {
  const names = series.map((s) => shown(entityName(s.labels)));
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

/** How a line is drawn. Eight hues, each solid or dashed: sixteen entities of a page are told apart. */
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

/** Remembers which entity has which style. Ranks below the number of hues are solid, those above dashed. */
export class EntityStyles {
  private readonly rank = new Map<string, number>();

  /** The entity's style; where a line of the chart (`used`) has it already, its hue in the other stroke. `used` grows by the choice. */
  of(entity: string, colours: readonly string[], used: Set<number> = new Set()): LineStyle {
    const hues = colours.length;
    const known = this.rank.get(entity);
    const kept = known === undefined ? [] : [known, (known + hues) % (2 * hues)].filter((rank) => !used.has(rank));
    const rank = kept[0] ?? this.leastUsed(2 * hues, used);
    if (known === undefined) this.rank.set(entity, rank);
    used.add(rank);
    return { colour: colours[rank % hues] as string, dashed: rank >= hues };
  }

  private leastUsed(styles: number, used: ReadonlySet<number>): number {
    const taken = Array.from({ length: styles }, (_, rank) => (used.has(rank) ? Number.MAX_SAFE_INTEGER : 0));
    for (const rank of this.rank.values()) taken[rank] = (taken[rank] ?? 0) + 1;
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
