// One job on its own page: the facts of the side panel, its life as one bar, and a tab for each thing there is of it.
import { useMemo } from "react";
import { useJob } from "../../api/queries";
import { ChartPageProvider } from "../../charts/page";
import { exactTime, parseTime } from "../../format/format";
import { useWords } from "../../i18n/locale";
import { PageHead } from "../../parts/PageHead";
import { Gone, isGone } from "../../parts/Gone";
import { FailedRefresh, Warnings } from "../../parts/States";
import { Link } from "../../router/Link";
import { useQueryState } from "../../router/usequery";
import { JobActions } from "./JobActions";
import { JobFacts } from "./JobFacts";
import type { JobId, KeptJobId } from "./JobsBoard";
import { JobTabs } from "./JobTabs";
import { LifeBar } from "./LifeBar";
import { jobSentence } from "./sentence";

export function JobPage({ id: named }: { id: JobId }) {
  const { t } = useWords();
  const [params] = useQueryState();
  const [namespace, type, name] = named;
  const uid = params.get("uid") ?? undefined;
  const id = useMemo((): KeptJobId => [namespace, type, name, uid], [namespace, type, name, uid]);
  const asked = useJob(id);
  const gone = isGone(asked);
  const filters = useMemo(() => new URLSearchParams({ job_namespace: namespace, job_type: type, job_name: name }), [namespace, type, name]);
  const crumb = (
    <div className="crumb">
      <Link to="/jobs">{t("board.jobs")}</Link> / <Link to={`/jobs?job_namespace=${encodeURIComponent(namespace)}`}>{namespace}</Link>
    </div>
  );
  return (
    <ChartPageProvider fallback="30m">
      <main className="page" data-testid="page-job" data-gone={gone}>
        <PageHead title={name} of={{ kind: "job", namespace, type, name, live: !gone && (asked.data?.job.live ?? true), waits: Boolean(asked.data?.job.waiting), hasPods: asked.data?.instances.length !== 0 }} before={crumb} answer={gone ? undefined : asked.data} sentence={!gone && asked.data ? jobSentence(asked.data.job) : undefined} onRefresh={() => void asked.refetch()} />
        <Gone asked={asked} kind="job" />
        {!gone && asked.data?.job.live === false && (
          <div className="banner" role="status" data-testid="job-of-ledger">
            <span>{t("jobs.fromLedger", { at: exactTime(parseTime(asked.data.job.deletedAt)) })}</span>
          </div>
        )}
        <Warnings of={[asked.data?.warnings]} />
        {!gone && <FailedRefresh asked={[asked]} />}
        {!gone && asked.data?.job.live && <JobActions id={named} job={asked.data.job} />}
        <JobFacts id={id} wide />
        {asked.data && <LifeBar life={asked.data.life} />}
        {asked.data && <JobTabs id={id} detail={asked.data} filters={filters} />}
      </main>
    </ChartPageProvider>
  );
}
