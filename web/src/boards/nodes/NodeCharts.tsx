// The six charts of document 000's Nodes board, under their literal titles; of a single node, what its cards feel and who uses them.
import { ChartGrid, chartsOf, type NamedCharts } from "../../charts/ChartGrid";

const PER_GPU: NamedCharts = [
  ["gpu-duty-cycle", "panel.dutyCycle", "gpu-duty-cycle"],
  ["gpu-memory-usage", "panel.memoryUsage", "gpu-memory-used"],
  ["gpu-memory-usage-percentage", "panel.memoryUsagePercent", "gpu-memory-used-percent"],
];
const PER_NODE: NamedCharts = [
  ["allocated-gpus-per-node", "panel.allocatedPerNode", "node-gpus-allocated"],
  ["gpu-number-per-node", "panel.gpusPerNode", "node-gpus-total"],
  ["total-gpu-memory-per-node", "panel.memoryPerNode", "node-gpu-memory-total"],
];

const OF_ONE: NamedCharts = [
  ["node-gpu-memory", "panel.nodeMemory", "node-gpu-memory"],
  ["gpu-temperature", "panel.temperature", "gpu-temperature"],
  ["gpu-power", "panel.power", "gpu-power"],
  ["container-gpu-memory", "panel.containerMemory", "container-gpu-memory-used"],
  ["clocks-held-down", "panel.heldDown", "gpu-held-down"],
  ["xid-errors", "panel.xid", "gpu-xid-errors"],
  ["ecc-errors", "panel.ecc", "gpu-ecc-errors"],
  ["remapped-rows", "panel.remapped", "gpu-remapped-rows"],
];

/** `filters` may name nodes and cards; the per-node charts have no cards. */
export function NodeCharts({ filters, perNode = true }: { filters: URLSearchParams; perNode?: boolean }) {
  const nodeFilters = new URLSearchParams(filters.getAll("gpu_node").map((node) => ["gpu_node", node]));
  return <ChartGrid charts={[...chartsOf(PER_GPU, filters), ...(perNode ? chartsOf(PER_NODE, nodeFilters) : chartsOf(OF_ONE, filters))]} />;
}
