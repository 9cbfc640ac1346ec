// The Cluster board: how full are we, who has it, what is broken, what is wasted. In this order, from the top.
import { useMemo } from "react";
import { useJobs, useMe, useOverview } from "../../api/queries";
import { ChartPageProvider } from "../../charts/page";
import { ChartPanel } from "../../charts/ChartPanel";
import { TimeWindow } from "../../charts/TimeWindow";
import { GpuMap } from "../../gpumap/GpuMap";
import { useWords } from "../../i18n/locale";
import { useAt } from "../../past/at";
import { PastBar } from "../../past/PastBar";
import { PageHead } from "../../parts/PageHead";
import { Answered, Bones, Empty, FailedRefresh, Warnings } from "../../parts/States";
import { withQuery } from "../../router/query";
import { navigate } from "../../router/router";
import { useKept } from "../../table/useKept";
import { jobKey } from "../jobs/columns";
import { JobTable } from "../jobs/JobTable";
import { WaitingPanel } from "../quota/Waiting";
import { Attention } from "./Attention";
import { Consumers } from "./Consumers";
import { Figures } from "./Figures";
import { RecentWarnings } from "./RecentWarnings";

export function OverviewBoard() {
  const { t } = useWords();
  const asked = useOverview();
  const at = useAt();
  const isAdmin = useMe().data?.user.role !== "researcher";
  return (
    <ChartPageProvider fallback="1h">
      <main className="page" data-testid="page-overview">
        <PageHead title={t("title.overview")} answer={asked.data} worst={asked.data?.attention[0]?.sentence} at={at} onRefresh={() => void asked.refetch()} />
        <PastBar />
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
        {at === null ? <History isAdmin={isAdmin} /> : <Waits at={at} />}
        {asked.data && at === null && (
          <div className="grid needs">
            <RecentWarnings className="c12" warnings={asked.data.recentWarnings} />
          </div>
        )}
      </main>
    </ChartPageProvider>
  );
}

function History({ isAdmin }: { isAdmin: boolean }) {
  const { t } = useWords();
  return (
    <>
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
    </>
  );
}

/** What waited at the moment, and why: jobs, and what waited for quota. */
function Waits({ at }: { at: string }) {
  const { t } = useWords();
  const asking = useMemo(() => new URLSearchParams({ job_status: "Pending", at }), [at]);
  const asked = useKept(useJobs(asking), asking);
  return (
    <>
      <JobTable
        slug="waiting-jobs"
        title={t("past.waitingJobs")}
        asked={asked}
        asking={asked.shown}
        filters={[]}
        onOpen={(job) => navigate(`/jobs${withQuery("", { at, open: jobKey(job) })}`)}
        none={<Empty why={t("past.nothingWaited")} />}
      />
      <WaitingPanel />
    </>
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
