// Under which filters do the charts show the cards of the table?
import type { ListedGpu } from "../../api/types";
import { type Charted, named } from "../../charts/named";
import { pick } from "../../router/query";

/** What the charts know themselves; by all else the cards of the table are asked for by their UUIDs. */
const KNOWN: readonly string[] = ["gpu_node", "GPU", "sort", "page", "size"];

export function charted(asking: URLSearchParams, rows: readonly Pick<ListedGpu, "node" | "uuid">[]): Charted {
  if ([...asking.keys()].every((key) => KNOWN.includes(key))) return { filters: pick(asking, ["gpu_node", "GPU"]), rows: null };
  const uuids = rows.map((row) => row.uuid).filter(Boolean);
  if (uuids.length > 0) return named("GPU", uuids);
  return { ...named("gpu_node", rows.map((row) => row.node)), rows: rows.length };
}
