// The three charts of running instances, under their literal titles.
import { ChartPanel } from "../../charts/ChartPanel";
import { TimeWindow } from "../../charts/TimeWindow";
import { useWords } from "../../i18n/locale";

export function JobCharts({ filters }: { filters: URLSearchParams }) {
  const { t } = useWords();
  return (
    <>
      <div className="row-head">
        <h2>{t("chart.charts")}</h2>
        <TimeWindow />
      </div>
      <div className="grid">
        <ChartPanel className="c4" slug="job-instance-used-gpu-memory" title={t("panel.instanceMemory")} query="instance-gpu-memory-used" filters={filters} />
        <ChartPanel className="c4" slug="job-instance-used-gpu-memory-percentage" title={t("panel.instanceMemoryPercent")} query="instance-gpu-memory-percent" filters={filters} />
        <ChartPanel className="c4" slug="job-instance-gpu-duty-cycle" title={t("panel.instanceDuty")} query="instance-gpu-duty-cycle" filters={filters} />
      </div>
    </>
  );
}
