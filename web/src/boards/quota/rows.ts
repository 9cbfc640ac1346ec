// Which lines does a quota table show? One per quota node; under a leaf with several namespaces, one per namespace.
import type { QuotaRow } from "../../api/types";
import { amount } from "../../format/format";
import type { Words } from "../../i18n/locale";

export interface QuotaLine {
  readonly key: string;
  readonly kind: "inner" | "leaf" | "namespace";
  readonly row: QuotaRow;
  readonly namespace: string | null;
  readonly used: number;
}

export function quotaLines(rows: readonly QuotaRow[], resource: string): QuotaLine[] {
  return rows.filter((row) => row.resource === resource).flatMap(linesOf);
}

function linesOf(row: QuotaRow): QuotaLine[] {
  const own: QuotaLine = { key: row.path, kind: row.isLeaf ? "leaf" : "inner", row, namespace: null, used: row.used };
  if (!row.isLeaf || row.byNamespace.length < 2) return [own];
  return [own, ...row.byNamespace.map((part): QuotaLine => ({ key: `${row.path} ${part.namespace}`, kind: "namespace", row, namespace: part.namespace, used: part.used }))];
}

/** A min as it counts, and what is written where that is more. */
export const minText = (unit: string, counts: number, written: number): string => (counts < written ? `${amount(unit, counts)} / ${amount(unit, written)}` : amount(unit, counts));

export const minWords = (unit: string, counts: number, written: number, t: Words["t"]): string => (counts < written ? t("quota.countsAs", { written: amount(unit, written), counts: amount(unit, counts) }) : "");

export interface UserLine {
  readonly key: string;
  readonly leaf: string;
  readonly user: string | null;
  /** By resource. */
  readonly used: ReadonlyMap<string, number>;
}

/** One line per leaf and user, by leaf; `null` = no known user. */
export function userLines(rows: readonly QuotaRow[]): UserLine[] {
  const lines = new Map<string, UserLine & { used: Map<string, number> }>();
  for (const row of rows.filter((each) => each.isLeaf)) {
    for (const { user, used } of row.byUser) {
      const key = `${row.path} ${user ?? "-"}`;
      const line = lines.get(key) ?? { key, leaf: row.name, user, used: new Map<string, number>() };
      line.used.set(row.resource, used);
      lines.set(key, line);
    }
  }
  return [...lines.values()].toSorted((one, other) => one.leaf.localeCompare(other.leaf, "en"));
}

/** Trees may name their nodes by full path (`root.a.1`); below their parent the last part is enough. */
export function shortName(row: Pick<QuotaRow, "name" | "parent">): string {
  return row.parent && row.name.startsWith(`${row.parent}.`) ? row.name.slice(row.parent.length + 1) : row.name;
}

export interface QuotaBar {
  /** All 0..1 of the bar's length. */
  readonly within: number;
  readonly borrowed: number;
  readonly waiting: number;
  readonly min: number;
  /** No limit: the bar ends open. */
  readonly open: boolean;
}

/** Used up to min, borrowed above it, what waits after that. The end is max; without one, a little more than the largest number. */
export function quotaBar(row: Pick<QuotaRow, "min" | "max" | "used" | "requested">): QuotaBar {
  const waiting = Math.max(0, row.requested - row.used);
  const end = row.max ?? Math.max(row.min, row.used + waiting) * 1.25;
  const of = (n: number) => (end > 0 ? Math.min(1, Math.max(0, n / end)) : 0);
  const within = Math.min(row.used, row.min);
  return { within: of(within), borrowed: of(row.used) - of(within), waiting: of(row.used + waiting) - of(row.used), min: of(row.min), open: row.max === null };
}

/** No requests, no guarantee, no limit: a table would contain only zeros. */
export const isNothing = (lines: readonly QuotaLine[]): boolean => lines.length > 0 && lines.every(({ row, used }) => !used && !row.requested && !row.claimed && !row.min && !row.max && row.waitingPods === 0);
