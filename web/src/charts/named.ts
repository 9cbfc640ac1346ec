// The things of a table, named to its charts one by one: in an order that a refresh of the table does not change, and not too many.

/** As many lines as a chart can have. */
const NAMES_MAX = 50;
/** Servers and proxies take addresses of 8 KiB; times and the rest stand there, too. */
const LENGTH_MAX = 6000;

/** Filters of the charts, and the number of the table's rows that they show; `null`: all that match. */
export interface Charted {
  readonly filters: URLSearchParams;
  readonly rows: number | null;
}

/** The names in their own order, as many as fit into an address. */
export function named(filter: string, names: readonly string[]): Charted {
  const filters = new URLSearchParams();
  let rows = 0;
  for (const name of [...new Set(names)].sort()) {
    const longer = new URLSearchParams([...filters, [filter, name]]);
    if (rows === NAMES_MAX || longer.toString().length > LENGTH_MAX) break;
    filters.append(filter, name);
    rows += 1;
  }
  return { filters, rows };
}
