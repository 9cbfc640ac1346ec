// What a job cost, and each of its pods. From the ledger, so the job may have ended or been deleted.
import { useMemo } from "react";
import { useJobCost } from "../../api/queries";
import type { JobCost as JobCostAnswer, PodCost } from "../../api/types";
import { duration, exactTime, gpus, heldHours, memory, money, parseTime, percent, UNKNOWN } from "../../format/format";
import { useWords, type Words } from "../../i18n/locale";
import { isMessageKey } from "../../i18n/translate";
import { Answered, Bones, Empty, Warnings } from "../../parts/States";
import { Link } from "../../router/Link";
import type { Column } from "../../table/columns";
import { DataTable } from "../../table/DataTable";
import { CsvHead } from "../../table/RowsCsv";
import type { KeptJobId } from "./JobsBoard";

const MAX_ROWS = 12;

export function JobCost({ id }: { id: KeptJobId }) {
  const asked = useJobCost(id);
  return (
    <Answered asked={asked} bones={<Bones lines={6} />}>
      {(answer) => <Costs answer={answer} />}
    </Answered>
  );
}

function Costs({ answer }: { answer: JobCostAnswer }) {
  const { t } = useWords();
  const columns = useMemo(() => podColumns(t, answer.currency), [t, answer.currency]);
  const { figures, currency, others } = answer;
  return (
    <div className="page-parts" data-testid="job-cost">
      <Warnings of={[answer.warnings]} />
      <div className="figures cost-figures">
        <Card slug="duration" title={t("cost.duration")} value={duration(secondsOf(answer))} beside={t("cost.gpuHours", { hours: heldHours(figures.gpuHours) })} />
        <Card slug="cost" title={t("cost.actual")} value={money(figures.cost)} unit={figures.cost === null ? "" : currency} beside={figures.cost === null ? t("usage.noPrice") : figures.unpricedGpuHours > 0 ? t("usage.unpricedBeside", { hours: heldHours(figures.unpricedGpuHours) }) : t("cost.asHeld")} />
        <Card slug="list" title={t("cost.list")} value={money(figures.listCost)} unit={figures.listCost === null ? "" : currency} beside={t("cost.listBeside")} />
        <Card slug="saved" title={t("cost.saved")} value={percent(figures.savedPercent)} beside={t("cost.savedBeside")} />
      </div>
      {others.length > 0 && <p className="dim">{t("cost.others", { n: others.length })}</p>}
      <section className="section">
        <CsvHead title={t("cost.pods")} name={`${answer.name}-cost`} rows={answer.pods} />
        {answer.pods.length === 0 ? (
          <Empty why={t("cost.none")}>{t("cost.noneNext")}</Empty>
        ) : (
          <div className="nested">
            <DataTable name="job-cost" caption={t("cost.pods")} columns={columns} rows={answer.pods} rowKey={(pod) => `${pod.pod} ${pod.node} ${pod.start}`} maxRows={MAX_ROWS} walkable />
          </div>
        )}
      </section>
    </div>
  );
}

/** From the first pod to the last; an open end is the time of the answer. */
function secondsOf({ start, end, generatedAt }: Pick<JobCostAnswer, "start" | "end" | "generatedAt">): number | null {
  const from = parseTime(start);
  const to = parseTime(end ?? generatedAt);
  return from === null || to === null ? null : (to - from) / 1000;
}

function Card({ slug, title, value, unit = "", beside }: { slug: string; title: string; value: string; unit?: string; beside: string }) {
  return (
    <section className="figure">
      <h2>{title}</h2>
      <div className="big" data-testid={`cost-${slug}`}>
        {value} {unit && <span className="beside">{unit}</span>}
      </div>
      <span className="fraction num">{beside}</span>
    </section>
  );
}

function statusWord(status: string, t: Words["t"]): string {
  const key = `cost.status.${status}`;
  return isMessageKey(key) ? t(key) : status;
}

const PER_SECOND_DIGITS = 6;
const SECONDS_PER_HOUR = 3600;

/** A price per hour as one per second. */
function perSecond(perHour: string | null): string {
  return perHour === null ? UNKNOWN : (Number(perHour) / SECONDS_PER_HOUR).toFixed(PER_SECOND_DIGITS);
}

const ended = (pod: PodCost): string => [exactTime(parseTime(pod.start)), pod.end === null ? "" : exactTime(parseTime(pod.end))].join(" – ");

function podColumns(t: Words["t"], currency: string): Column<PodCost>[] {
  const paid = { unit: currency, number: true, unsortable: true };
  const rate = { ...paid, unit: `${currency}/s` };
  return [
    { key: "pod", head: t("job.instance"), width: 130, mono: true, fixed: true, unsortable: true, title: (pod) => pod.pod, cell: (pod) => pod.pod },
    { key: "status", head: t("col.status"), width: 76, unsortable: true, title: ended, cell: (pod) => statusWord(pod.status, t) },
    { key: "seconds", head: t("col.duration"), width: 80, number: true, unsortable: true, title: ended, cell: (pod) => duration(pod.seconds) },
    { key: "cores", head: t("prices.cores"), width: 60, number: true, unsortable: true, cell: (pod) => gpus(pod.cores) },
    { key: "memoryMiB", head: t("prices.memory"), width: 72, number: true, unsortable: true, cell: (pod) => memory(pod.memoryMiB) },
    { key: "gpus", head: t("job.gpus"), width: 52, number: true, unsortable: true, title: (pod) => (pod.gpuMemoryMiB > 0 ? memory(pod.gpuMemoryMiB) : ""), cell: (pod) => gpus(pod.gpus) },
    { key: "model", head: t("usage.model"), width: 80, unsortable: true, title: (pod) => pod.model, cell: (pod) => pod.model || UNKNOWN },
    { key: "node", head: t("col.node"), width: 80, mono: true, unsortable: true, cell: (pod) => <Link to={`/nodes/${encodeURIComponent(pod.node)}`}>{pod.node}</Link> },
    { key: "instanceType", head: t("cost.instanceType"), width: 90, mono: true, unsortable: true, title: (pod) => pod.instanceType, cell: (pod) => pod.instanceType || UNKNOWN },
    ...(currency === ""
      ? []
      : ([
          { ...rate, key: "perHour", head: t("cost.perSecond"), width: 84, title: (pod) => `${money(pod.perHour)} ${currency} / h`, cell: (pod) => perSecond(pod.perHour) },
          { ...rate, key: "listPerHour", head: t("cost.listPerSecond"), width: 88, title: (pod) => `${money(pod.listPerHour)} ${currency} / h`, cell: (pod) => perSecond(pod.listPerHour) },
          { ...paid, key: "cost", head: t("cost.actualShort"), width: 78, cell: (pod) => money(pod.cost) },
          { ...paid, key: "listCost", head: t("cost.listShort"), width: 78, cell: (pod) => money(pod.listCost) },
          { key: "savedPercent", head: t("cost.saved"), width: 64, number: true, unsortable: true, cell: (pod) => percent(pod.savedPercent) },
        ] satisfies Column<PodCost>[])),
  ];
}
