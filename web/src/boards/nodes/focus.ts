// What do the filters of the Nodes board mean for the map and the charts? The table is filtered by the server; here the same nodes are named.
import type { Focus } from "../../gpumap/focus";

/** Only the server knows which nodes these match. */
const ASKED = ["status", "mode", "model", "q"] as const;

/** The address of a question with more names would be longer than servers take. */
export const CHART_NODES_MAX = 500;

export const mustAsk = (params: URLSearchParams): boolean => ASKED.some((key) => params.has(key));

/** `matching`: what the server said; `null` where nobody was asked. */
export function focusOf(params: URLSearchParams, matching: readonly string[] | null): Focus {
  const chosen = matching ?? (params.has("gpu_node") ? params.getAll("gpu_node") : null);
  const cards = params.getAll("GPU").map(Number);
  return { nodes: chosen && new Set(chosen), cards: cards.length > 0 ? new Set(cards) : null };
}

/** The filters of the charts; `null`: there is nothing to show. */
export function chartFilters(params: URLSearchParams, matching: readonly string[] | null): URLSearchParams | null {
  if (matching?.length === 0) return null;
  const nodes = matching && matching.length <= CHART_NODES_MAX ? matching : params.getAll("gpu_node");
  return new URLSearchParams([...nodes.map((node) => ["gpu_node", node]), ...params.getAll("GPU").map((gpu) => ["GPU", gpu])]);
}
