// One version of a serving job: why it is not ready first, then where it is reached, and its pods.
import type { ServingJob } from "../../api/types";
import { gpus, UNKNOWN } from "../../format/format";
import { useWords } from "../../i18n/locale";
import { Ago } from "../../parts/Ago";
import { Copied } from "../../parts/Copy";
import { Status } from "../../parts/Status";
import { WhyItWaits } from "../../parts/WhyItWaits";
import { DataTable } from "../../table/DataTable";
import { CsvHead } from "../../table/RowsCsv";
import { instanceColumns, podsOf } from "./columns";

export function ServingFacts({ job }: { job: ServingJob }) {
  const { t } = useWords();
  return (
    <>
      {job.waiting && (
        <div className="waits" data-testid="why-it-waits">
          <h2>{t("serving.why")}</h2>
          <WhyItWaits waiting={job.waiting} />
        </div>
      )}
      <dl className="facts num">
        <dt>{t("col.status")}</dt>
        <dd>
          <Status word={job.status} />
        </dd>
        <dt>{t("serving.type")}</dt>
        <dd>{job.type}</dd>
        <dt>{t("serving.version")}</dt>
        <dd className="mono">{job.version || UNKNOWN}</dd>
        <dt>{t("col.namespace")}</dt>
        <dd className="mono">{job.namespace}</dd>
        <dt>{t("serving.pods")}</dt>
        <dd>{podsOf(job)}</dd>
        <dt>GPUs</dt>
        <dd>{gpus(job.gpus)}</dd>
        <dt>{t("serving.address")}</dt>
        <dd>{job.address ? <Copied text={job.address} /> : UNKNOWN}</dd>
        <dt>{t("serving.ports")}</dt>
        <dd className="mono">{job.ports.join(", ") || UNKNOWN}</dd>
        <dt>{t("col.user")}</dt>
        <dd>{job.user || UNKNOWN}</dd>
        <dt>{t("col.created")}</dt>
        <dd>
          <Ago at={job.createdAt} />
        </dd>
      </dl>
      {job.instances.length > 0 && (
        <section className="section">
          <CsvHead title={t("job.instances")} name={`${job.name}-${job.version}-pods`} rows={job.instances} />
          <div className="nested">
            <DataTable name="serving-instances" caption={t("job.instances")} columns={instanceColumns(job.namespace, t)} rows={job.instances} rowKey={(i) => i.name} maxRows={12} />
          </div>
        </section>
      )}
    </>
  );
}
