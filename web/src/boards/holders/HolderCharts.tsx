// What do the containers that hold GPUs use of them? The board "GPU APP" of document 001, for the pods of the table.
import { ChartGrid, chartsOf, type NamedCharts } from "../../charts/ChartGrid";

const CHARTS: NamedCharts = [
  ["container-gpu-memory", "panel.containerMemory", "container-gpu-memory-used"],
  ["container-gpu-memory-percentage", "panel.containerMemoryPercent", "container-gpu-memory-percent"],
  ["container-gpu-memory-limit", "panel.containerLimit", "container-gpu-memory-limit"],
  ["container-gpu-utilization", "panel.containerUtilization", "container-gpu-utilization"],
  ["pod-gpu-power", "panel.podPower", "pod-gpu-power"],
  ["pod-restarts", "panel.podRestarts", "pod-restarts"],
];

export const HolderCharts = ({ filters }: { filters: URLSearchParams }) => <ChartGrid charts={chartsOf(CHARTS, filters)} />;
