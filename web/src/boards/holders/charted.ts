// Under which filters do the charts show the pods of the table?
import type { Holder } from "../../api/types";
import { type Charted, named } from "../../charts/named";
import { pick } from "../../router/query";

/** What the charts know themselves; by all else the pods of the table are asked for by name. */
const KNOWN: readonly string[] = ["namespace", "sort", "page", "size"];

export function charted(asking: URLSearchParams, rows: readonly Pick<Holder, "namespace" | "name">[]): Charted {
  if ([...asking.keys()].every((key) => KNOWN.includes(key))) return { filters: pick(asking, ["namespace"]), rows: null };
  return named("holder", rows.map((row) => `${row.namespace}/${row.name}`));
}
