// What do the filters of the Nodes board mean for the map and the charts? The table is filtered by the server; here the same nodes are named.
import { cardKey, type Focus } from "../../gpumap/focus";

/** Only the server knows which nodes these match. */
const ASKED = ["status", "mode", "model", "q"] as const;

/** The address of a question with more names would be longer than servers take. */
export const CHART_NODES_MAX = 500;

export const mustAsk = (params: URLSearchParams): boolean => ASKED.some((key) => params.has(key));

const isIndex = (gpu: string): boolean => /^\d+$/.test(gpu);

/** Cards with the UUIDs of the address, which the map does not contain; `null`: no UUIDs. */
export function uuidsQuery(params: URLSearchParams): URLSearchParams | null {
  const uuids = params.getAll("GPU").filter((gpu) => !isIndex(gpu));
  return uuids.length > 0 ? new URLSearchParams([...uuids.map((uuid) => ["GPU", uuid]), ["size", "500"]]) : null;
}

/** `matching`: the server's answer; `null` without a request. `named`: the cards with the requested UUIDs. */
export function focusOf(params: URLSearchParams, matching: readonly string[] | null, named: readonly { node: string; index: number }[] = []): Focus {
  const chosen = matching ?? (params.has("gpu_node") ? params.getAll("gpu_node") : null);
  const indexes = params.getAll("GPU").filter(isIndex).map(Number);
  const cards = params.has("GPU") ? { indexes: new Set(indexes), named: new Set(named.map(({ node, index }) => cardKey(node, index))) } : null;
  return { nodes: chosen && new Set(chosen), cards };
}

/** The filters of the charts; `null`: there is nothing to show. */
export function chartFilters(params: URLSearchParams, matching: readonly string[] | null): URLSearchParams | null {
  if (matching?.length === 0) return null;
  const nodes = matching && matching.length <= CHART_NODES_MAX ? matching : params.getAll("gpu_node");
  return new URLSearchParams([...nodes.map((node) => ["gpu_node", node]), ...params.getAll("GPU").map((gpu) => ["GPU", gpu])]);
}
