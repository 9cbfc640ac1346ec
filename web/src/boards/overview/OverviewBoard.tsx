// The Cluster board: how full are we, who has it, what is broken, what is wasted. In this order, from the top.
import { useMe, useOverview } from "../../api/queries";
import { ChartPageProvider } from "../../charts/page";
import { ChartPanel } from "../../charts/ChartPanel";
import { TimeWindow } from "../../charts/TimeWindow";
import { GpuMap } from "../../gpumap/GpuMap";
import { useWords } from "../../i18n/locale";
import { PageHead } from "../../parts/PageHead";
import { Answered, Bones, FailedRefresh, Warnings } from "../../parts/States";
import { Attention } from "./Attention";
import { Consumers } from "./Consumers";
import { Figures } from "./Figures";
import { RecentWarnings } from "./RecentWarnings";

export function OverviewBoard() {
  const { t } = useWords();
  const asked = useOverview();
  const isAdmin = useMe().data?.user.role !== "researcher";
  return (
    <ChartPageProvider fallback="1h">
      <main className="page" data-testid="page-overview">
        <PageHead title={t("title.overview")} answer={asked.data} worst={asked.data?.attention[0]?.sentence} onRefresh={() => void asked.refetch()} />
        {asked.data && <Attention lines={asked.data.attention} />}
        <Warnings of={[asked.data?.warnings]} />
        <FailedRefresh asked={[asked]} />
        <div className="lead">
          <GpuMap />
          <div className="all">
            <Answered asked={asked} bones={<FigureBones />}>
              {(overview) => <Figures overview={overview} />}
            </Answered>
          </div>
          {asked.data && <Consumers overview={asked.data} />}
        </div>
        <div className="row-head">
          <h2>{t("overview.history")}</h2>
          <TimeWindow />
        </div>
        <div className="grid">
          <ChartPanel className="c3w" slug="chart-utilization" title={t("chart.clusterUtil")} query="cluster-gpu-utilization" />
          <ChartPanel className="c3w" slug="chart-gpus" title={t("chart.clusterGpus")} query="cluster-gpus-allocated" />
          <ChartPanel className="c3w" slug="chart-memory" title={t("chart.clusterMemory")} query="cluster-gpu-memory" />
          {isAdmin && <ChartPanel className="c3w" slug="chart-jobs" title={t("chart.clusterJobs")} query="cluster-jobs" />}
        </div>
        {asked.data && (
          <div className="grid needs">
            <RecentWarnings className="c12" warnings={asked.data.recentWarnings} />
          </div>
        )}
      </main>
    </ChartPageProvider>
  );
}

function FigureBones() {
  return (
    <div className="figures">
      {Array.from({ length: 8 }, (_, i) => (
        <div className="figure" key={i}>
          <Bones lines={2} />
        </div>
      ))}
    </div>
  );
}
