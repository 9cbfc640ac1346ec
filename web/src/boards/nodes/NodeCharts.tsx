// The six charts of document 000's Nodes board, under their literal titles.
import { ChartPanel } from "../../charts/ChartPanel";
import { TimeWindow } from "../../charts/TimeWindow";
import { useWords } from "../../i18n/locale";
import type { MessageKey } from "../../i18n/translate";

const PER_GPU: readonly (readonly [slug: string, title: MessageKey, query: string])[] = [
  ["gpu-duty-cycle", "panel.dutyCycle", "gpu-duty-cycle"],
  ["gpu-memory-usage", "panel.memoryUsage", "gpu-memory-used"],
  ["gpu-memory-usage-percentage", "panel.memoryUsagePercent", "gpu-memory-used-percent"],
];
const PER_NODE: readonly (readonly [slug: string, title: MessageKey, query: string])[] = [
  ["allocated-gpus-per-node", "panel.allocatedPerNode", "node-gpus-allocated"],
  ["gpu-number-per-node", "panel.gpusPerNode", "node-gpus-total"],
  ["total-gpu-memory-per-node", "panel.memoryPerNode", "node-gpu-memory-total"],
];

/** `filters` may name nodes and cards; the per-node charts know nothing of cards. */
export function NodeCharts({ filters, perNode = true }: { filters: URLSearchParams; perNode?: boolean }) {
  const { t } = useWords();
  const nodeFilters = new URLSearchParams(filters.getAll("gpu_node").map((node) => ["gpu_node", node]));
  return (
    <>
      <div className="row-head">
        <h2>{t("chart.charts")}</h2>
        <TimeWindow />
      </div>
      <div className="grid">
        {PER_GPU.map(([slug, title, query]) => (
          <ChartPanel key={slug} className="c4" slug={slug} title={t(title)} query={query} filters={filters} />
        ))}
        {perNode && PER_NODE.map(([slug, title, query]) => <ChartPanel key={slug} className="c4" slug={slug} title={t(title)} query={query} filters={nodeFilters} />)}
      </div>
    </>
  );
}
