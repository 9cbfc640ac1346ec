// How is this node, in one sentence? From the node's own answer, as the boards' sentences come from theirs.
import type { NodeRow, Sentence, Sharing } from "../../api/types";
import { percent } from "../../format/format";

export function nodeSentence(node: NodeRow, sharing: Sharing | null): Sentence {
  const { gpusTotal: total, gpusAllocated: allocated, gpusUnhealthy: unhealthy, gpuUtilPercent } = node;
  const suffix = unhealthy > 0 ? "-unhealthy" : "";
  if (total === 0) return { code: "node-none", values: {}, text: "" };
  if (sharing && node.gpuUnitsTotal > 0) {
    const values = { total, allocated, unhealthy, units: node.gpuUnitsAllocated, unitsTotal: node.gpuUnitsTotal, largest: sharing.largestFree };
    return { code: `node-share${suffix}`, values, text: "" };
  }
  return { code: `node${suffix}`, values: { total, allocated, unhealthy, util: percent(gpuUtilPercent) }, text: "" };
}
