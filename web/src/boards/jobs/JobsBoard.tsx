// The Training jobs board: filters of document 000, one list of live and finished jobs, three charts of running instances.
import { useMemo } from "react";
import { type Job, type KeptJob, useJob, useJobs } from "../../api/queries";
import { ChartPageProvider } from "../../charts/page";
import { Command } from "../../parts/Copy";
import { FIRST_JOB } from "../../commands/commands";
import { useWords, type Words } from "../../i18n/locale";
import { isMessageKey } from "../../i18n/translate";
import { useAt } from "../../past/at";
import { PastBar } from "../../past/PastBar";
import { Choices } from "../../parts/Choices";
import { PageHead } from "../../parts/PageHead";
import { SidePanel } from "../../parts/SidePanel";
import { Empty, FailedRefresh, Warnings } from "../../parts/States";
import { listQuery, pick } from "../../router/query";
import { useQueryState } from "../../router/usequery";
import { Choice, SearchFilter } from "../../table/Filters";
import { useKept } from "../../table/useKept";
import { useTyped } from "../../table/useTyped";
import { jobKey, jobPage, jobRowKey } from "./columns";
import { SubmitLink } from "../submit/SubmitLink";
import { JobCharts } from "./JobCharts";
import { JobFacts } from "./JobFacts";
import { JobTable } from "./JobTable";

const FILTERS = ["job_namespace", "job_type", "job_name", "job_status", "user", "leaf", "q"] as const;
const ASKED = [...FILTERS, "deleted", "sort", "at"] as const;
const STATUSES = ["Running", "Pending", "Succeeded", "Failed"] as const;

export type JobId = Job;
export type KeptJobId = KeptJob;

export function jobId(text: string | null): JobId | null {
  const parts = text?.split("/") ?? [];
  return parts.length === 3 && parts.every(Boolean) ? (parts as unknown as JobId) : null;
}

/** The same, with or without a uid at the end. */
function openJob(text: string | null): KeptJobId | null {
  const parts = text?.split("/") ?? [];
  const id = jobId(parts.slice(0, 3).join("/"));
  return id && parts.length <= 4 ? [...id, parts[3]] : null;
}

const notServed = (types: readonly string[], t: Words["t"]): string => (types.length > 0 ? t("jobs.notServed", { types: types.join(", ") }) : "");

export function JobsBoard() {
  const { t } = useWords();
  const at = useAt();
  const [params, set] = useQueryState();
  const asking = useMemo(() => listQuery(params, ASKED), [params]);
  const asked = useKept(useJobs(asking), asking);
  const facets = asked.data?.facets;
  const [naming, isNaming, onName] = useTyped();
  const found = useJobs(naming, isNaming).data?.items.map((j) => j.name) ?? [];
  const open = openJob(params.get("open"));
  const opened = useJob(open).data;
  const areDeleted = params.get("deleted") === "yes";
  const wordOf = (status: string) => {
    const key = `status.${status.toLowerCase()}`;
    return isMessageKey(key) ? t(key) : status;
  };
  return (
    <ChartPageProvider fallback="30m">
      <main className="page" data-testid="page-jobs">
        <PageHead title={t("title.jobs")} answer={asked.data} at={at} onRefresh={() => void asked.refetch()} action={<SubmitLink />} />
        {at && <PastBar />}
        <div className="filters">
          <Choice name="job_namespace" choices={facets?.["job_namespace"] ?? []} params={params} set={set} width={164} />
          <Choice name="job_type" choices={facets?.["job_type"] ?? []} params={params} set={set} width={128} foot={notServed(asked.data?.missingTypes ?? [], t)} />
          <Choice name="job_name" choices={[...(facets?.["job_name"] ?? []), ...found]} onSearch={onName} params={params} set={set} width={128} />
          <Choice name="job_status" choices={STATUSES} nameOf={wordOf} params={params} set={set} width={144} />
          <Choice name="user" label={t("col.user")} choices={facets?.["user"] ?? []} params={params} set={set} width={98} />
          <Choice name="leaf" label={t("col.quotaPath")} choices={facets?.["leaf"] ?? []} params={params} set={set} width={136} />
          <div className="end">
            <SearchFilter params={params} set={set} placeholder={t("jobs.search")} />
          </div>
        </div>
        <Warnings of={[asked.data?.warnings]} />
        <FailedRefresh asked={[asked]} />
        <JobTable
          slug="training-jobs"
          title={t("panel.jobs")}
          note={
            !at && (
              <Choices
                name="deleted"
                label={t("jobs.which")}
                value={areDeleted ? "yes" : ""}
                choices={[
                  { value: "", word: t("jobs.existing") },
                  { value: "yes", word: t("jobs.deletedOnly") },
                ]}
                onChoose={(deleted) => set({ deleted, page: null, open: null })}
              />
            )
          }
          asked={asked}
          asking={asked.shown}
          filters={FILTERS}
          selected={open && jobRowKey({ namespace: open[0], type: open[1], name: open[2], uid: open[3] ?? "", live: open[3] === undefined })}
          onOpen={(job) => set({ open: job.live ? jobKey(job) : `${jobKey(job)}/${job.uid}` }, open ? "replace" : "push")}
          none={
            areDeleted ? (
              <Empty why={t("sentence.jobs-no-deleted")} />
            ) : (
              <Empty why={t("jobs.none")}>
                {t("jobs.noneNext")} <Command text={FIRST_JOB} />
              </Empty>
            )
          }
        />
        {!areDeleted && !at && <JobCharts filters={pick(params, ["job_namespace", "job_type", "job_name"])} />}
        {open && (
          <SidePanel name={open[2]} of={{ kind: "job", namespace: open[0], type: open[1], name: open[2], live: opened?.job.live ?? true, waits: Boolean(opened?.job.waiting), hasPods: opened?.instances.length !== 0 }} page={jobPage(open)} onClose={() => set({ open: null })}>
            <JobFacts id={open} />
          </SidePanel>
        )}
      </main>
    </ChartPageProvider>
  );
}
