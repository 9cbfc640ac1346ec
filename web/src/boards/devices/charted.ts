// Under which filters do the charts show the cards of the table?
import type { ListedGpu } from "../../api/types";

/** What the charts know themselves; by all else the cards of the table are asked for by their UUIDs. */
const KNOWN: readonly string[] = ["gpu_node", "GPU", "sort", "page", "size"];

export function charted(asking: URLSearchParams, rows: readonly Pick<ListedGpu, "node" | "uuid">[]): URLSearchParams {
  const isNarrower = [...asking.keys()].some((key) => !KNOWN.includes(key));
  const uuids = rows.map((row) => row.uuid).filter(Boolean);
  if (isNarrower && uuids.length > 0) return new URLSearchParams(uuids.map((uuid) => ["GPU", uuid]));
  const nodes = isNarrower ? [...new Set(rows.map((row) => row.node))] : asking.getAll("gpu_node");
  return new URLSearchParams([...nodes.map((node) => ["gpu_node", node]), ...(isNarrower ? [] : asking.getAll("GPU").map((gpu) => ["GPU", gpu]))]);
}
