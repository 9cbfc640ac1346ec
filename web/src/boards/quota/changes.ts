// Bounds of the "what if": which, to what, and the request to the server.
import type { BoundsChange, QuotaBounds, QuotaTreeRow } from "../../api/types";

export type Bound = "min" | "max";
/** Text by cell; cells that equal the tree are not in it. */
export type Changes = ReadonlyMap<string, string>;

export const NO_CHANGES: Changes = new Map();

export const cellKey = (node: string, resource: string, bound: Bound): string => JSON.stringify([node, resource, bound]);

export const writtenText = (bounds: QuotaBounds, bound: Bound): string => (bound === "min" ? bounds.minText : bounds.maxText);

/** The changes with one cell typed anew. */
export function typed(changes: Changes, node: string, bounds: QuotaBounds, bound: Bound, text: string): Changes {
  const next = new Map(changes);
  const key = cellKey(node, bounds.resource, bound);
  if (text.trim() === writtenText(bounds, bound)) next.delete(key);
  else next.set(key, text);
  return next;
}

/** As the server is asked, min and max of a resource together. */
export function asQuestion(changes: Changes): BoundsChange[] {
  const asked = new Map<string, BoundsChange>();
  for (const [key, text] of changes) {
    const [node, resource, bound] = JSON.parse(key) as [string, string, Bound];
    const place = JSON.stringify([node, resource]);
    asked.set(place, { ...(asked.get(place) ?? { node, resource, min: null, max: null }), [bound]: text.trim() });
  }
  return [...asked.values()];
}

/** Rows whose name, path or namespaces hold the text, with all that is above them. */
export function found(rows: readonly QuotaTreeRow[], text: string): readonly QuotaTreeRow[] {
  const needle = text.trim().toLowerCase();
  if (!needle) return rows;
  const names = new Set<string>();
  const parentOf = new Map(rows.map((row) => [row.name, row.parent]));
  for (const row of rows) {
    if (![row.name, row.path, ...row.namespaces].some((each) => each.toLowerCase().includes(needle))) continue;
    for (let name: string | undefined = row.name; name && !names.has(name); name = parentOf.get(name)) names.add(name);
  }
  return rows.filter((row) => names.has(row.name));
}

/** Rows of which no node above is folded; parents come before their children. */
export function unfolded(rows: readonly QuotaTreeRow[], folded: readonly string[]): readonly QuotaTreeRow[] {
  let hiddenBelow = Number.POSITIVE_INFINITY;
  return rows.filter((row) => {
    if (row.depth > hiddenBelow) return false;
    hiddenBelow = folded.includes(row.path) ? row.depth : Number.POSITIVE_INFINITY;
    return true;
  });
}
