// The three charts of running instances, under their literal titles.
import { ChartGrid, chartsOf, type NamedCharts } from "../../charts/ChartGrid";

const CHARTS: NamedCharts = [
  ["job-instance-used-gpu-memory", "panel.instanceMemory", "instance-gpu-memory-used"],
  ["job-instance-used-gpu-memory-percentage", "panel.instanceMemoryPercent", "instance-gpu-memory-percent"],
  ["job-instance-gpu-duty-cycle", "panel.instanceDuty", "instance-gpu-duty-cycle"],
];

export const JobCharts = ({ filters }: { filters: URLSearchParams }) => <ChartGrid charts={chartsOf(CHARTS, filters)} />;
