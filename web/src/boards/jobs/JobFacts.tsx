// Everything about one job: why it waits first, then what it asked for, its instances, what happened.
import { useJob } from "../../api/queries";
import type { JobDetail } from "../../api/types";
import { count, duration, gpus, memory, memoryFraction, percent, UNKNOWN } from "../../format/format";
import { useWords } from "../../i18n/locale";
import { Ago } from "../../parts/Ago";
import { Copied } from "../../parts/Copy";
import { EventList } from "../../parts/EventList";
import { Gone, isGone } from "../../parts/Gone";
import { Status } from "../../parts/Status";
import { Answered, Bones } from "../../parts/States";
import { WhyItWaits } from "../../parts/WhyItWaits";
import { Link } from "../../router/Link";
import { DataTable } from "../../table/DataTable";
import { CsvHead } from "../../table/RowsCsv";
import { requested, shares } from "./columns";
import { instanceColumns } from "./instances";
import type { KeptJobId } from "./JobsBoard";

export function JobFacts({ id, wide }: { id: KeptJobId; wide?: boolean }) {
  const { t } = useWords();
  const asked = useJob(id);
  return (
    <Answered asked={asked} bones={<Bones lines={8} />}>
      {(detail) => (
        <>
          {!wide && <Gone asked={asked} kind="job" />}
          {detail.job.waiting && !isGone(asked) && (
            <div className="waits" data-testid="why-it-waits">
              <h2>{t("job.why")}</h2>
              <WhyItWaits waiting={detail.job.waiting} />
            </div>
          )}
          <Summary detail={detail} wide={Boolean(wide)} />
          {!wide && <Instances detail={detail} />}
          {!wide && <Events detail={detail} />}
        </>
      )}
    </Answered>
  );
}

function Summary({ detail, wide }: { detail: JobDetail; wide: boolean }) {
  const { t } = useWords();
  const j = detail.job;
  const i = j.instances;
  return (
    <dl className={`facts num ${wide ? "wide" : ""}`}>
      <dt>{t("col.jobStatus")}</dt>
      <dd>
        <Status word={j.status} suffix={j.state.toLowerCase() === j.status.toLowerCase() ? "" : ` · ${j.state}`} />
        {!j.live && j.status !== "Deleted" && <span className="dim"> · {t("job.deleted")}</span>}
      </dd>
      <dt>{t("col.jobType")}</dt>
      <dd className="mono">
        {j.type} <span className="dim">{j.apiVersion}</span>
      </dd>
      <dt>{t("col.namespace")}</dt>
      <dd className="mono">{j.namespace}</dd>
      <dt>{t("col.duration")}</dt>
      <dd>{duration(j.durationSeconds)}</dd>
      <dt>{t("job.gpus")}</dt>
      <dd>{shares(j) ? t("job.memoryHeld", { held: memory(j.gpuMemoryAllocatedMiB), asked: requested(j) }) : t("job.gpusHeld", { held: gpus(j.gpusAllocated), asked: requested(j) })}</dd>
      <dt>{t("col.memoryUsed")}</dt>
      <dd>{memoryFraction(j.gpuMemoryUsedMiB, j.gpuMemoryUsedOfMiB)}</dd>
      <dt>{t("col.utilization")}</dt>
      <dd>{percent(j.gpuUtilPercent)}</dd>
      <dt>{t("job.instances")}</dt>
      <dd>{t(i.unknown > 0 ? "job.instanceCountsSilent" : "job.instanceCounts", { running: count(i.running), desired: count(i.desired), unknown: count(i.unknown), pending: count(i.pending), failed: count(i.failed) })}</dd>
      <dt>{t("col.user")}</dt>
      <dd>{j.user || UNKNOWN}</dd>
      <dt>{t("col.quotaPath")}</dt>
      <dd className="mono">{j.quotaPath ? <Link to={`/quota?path=${encodeURIComponent(j.quotaPath)}`}>{j.quotaPath}</Link> : UNKNOWN}</dd>
      <dt>{t("col.created")}</dt>
      <dd>
        <Ago at={j.createdAt} />
      </dd>
      <dt>{t("job.finished")}</dt>
      <dd>
        <Ago at={j.finishedAt} />
      </dd>
      <dt>UID</dt>
      <dd>{j.uid ? <Copied text={j.uid} /> : UNKNOWN}</dd>
    </dl>
  );
}

export function Instances({ detail }: { detail: JobDetail }) {
  const words = useWords();
  const { t } = words;
  if (detail.instances.length === 0) return null;
  const columns = instanceColumns(words);
  return (
    <section className="section">
      <CsvHead title={t("job.instances")} name={`${detail.job.name}-instances`} rows={detail.instances} />
      <div className="nested">
        <DataTable name="job-instances" caption={t("job.instances")} columns={columns} rows={detail.instances} rowKey={(i) => i.name} maxRows={12} />
      </div>
    </section>
  );
}

function Events({ detail }: { detail: JobDetail }) {
  const { t } = useWords();
  if (detail.events.length === 0) return null;
  return (
    <section className="section">
      <h2>{t("job.events")}</h2>
      <EventList events={detail.events} />
    </section>
  );
}
