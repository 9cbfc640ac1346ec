// How is this node, in one sentence? From the node's own answer, as the boards' sentences come from theirs.
import type { NodeRow, Sentence } from "../../api/types";
import { percent } from "../../format/format";

export function nodeSentence(node: NodeRow): Sentence {
  const { gpusTotal: total, gpusAllocated: allocated, gpusUnhealthy: unhealthy, gpuUtilPercent } = node;
  if (total === 0) return { code: "node-none", values: {}, text: "" };
  return { code: unhealthy > 0 ? "node-unhealthy" : "node", values: { total, allocated, unhealthy, util: percent(gpuUtilPercent) }, text: "" };
}
