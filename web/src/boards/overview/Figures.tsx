// The operator's eight panels under their literal titles. A percent never stands without its fraction.
import { type ReactNode, useId } from "react";
import type { JobState, Overview } from "../../api/types";
import { count, gpus, memoryFraction, percent, share } from "../../format/format";
import { useWords } from "../../i18n/locale";
import type { MessageKey } from "../../i18n/translate";
import { Meter } from "../../parts/Meter";
import { Status } from "../../parts/Status";
import { Link } from "../../router/Link";

const JOB_STATES: readonly { state: JobState; word: string }[] = [
  { state: "running", word: "Running" },
  { state: "pending", word: "Pending" },
  { state: "succeeded", word: "Succeeded" },
  { state: "failed", word: "Failed" },
];

export function Figures({ overview: o }: { overview: Overview }) {
  const { t } = useWords();
  const memory = o.gpuMemory;
  return (
    <div className="figures">
      <Figure slug="gpu-summary-of-cluster" title="panel.gpuSummary" className="two">
        <div className="lines">
          <SummaryLine slug="nodes" word={t("overview.nodes")} counts={o.gpuNodes} />
          <SummaryLine slug="gpus" word={t("overview.gpus")} counts={o.gpus} />
        </div>
      </Figure>
      <Figure slug="total-gpu-nodes" title="panel.totalNodes">
        <Big>{count(o.gpuNodes.total)}</Big>
      </Figure>
      <Figure slug="unhealthy-gpu-nodes" title="panel.unhealthyNodes">
        <Big beside={t("overview.faultyNodes", { n: o.gpuNodes.faulty })} bad={o.gpuNodes.faulty > 0}>
          {count(o.gpuNodes.unhealthy)}
        </Big>
      </Figure>
      <Share slug="gpus-allocated-total" title="panel.gpusAllocated" value={share(o.gpus.allocated, o.gpus.total)} fraction={`${gpus(o.gpus.allocated)} / ${gpus(o.gpus.total)}`}>
        <Meter label={t("panel.gpusAllocated")} total={o.gpus.total} allocated={o.gpus.allocated} />
      </Share>
      <Share slug="gpu-memory-allocated-total" title="panel.memoryAllocated" value={share(memory.allocatedMiB, memory.totalMiB)} fraction={memoryFraction(memory.allocatedMiB, memory.totalMiB)}>
        <Meter label={t("panel.memoryAllocated")} total={memory.totalMiB} allocated={memory.allocatedMiB} />
      </Share>
      <Share slug="gpu-memory-used-total" title="panel.memoryUsed" value={share(memory.usedMiB, memory.usedOfMiB)} fraction={memoryFraction(memory.usedMiB, memory.usedOfMiB)}>
        <Meter label={t("panel.memoryUsed")} total={memory.usedOfMiB} used={memory.usedMiB} />
      </Share>
      <Share slug="gpu-utilization" title="panel.utilization" value={o.gpuUtilPercent} fraction={t("overview.reporting", { n: count(o.gpusReporting), total: count(o.gpus.total) })}>
        <Meter label={t("panel.utilization")} total={100} used={o.gpuUtilPercent} />
      </Share>
      <Figure slug="training-job-summary-of-cluster" title="panel.jobSummary" className="four">
        <div className="states">
          {JOB_STATES.map(({ state, word }) => (
            <Link key={state} to={`/jobs?job_status=${word}`} data-testid={`jobs-${state}`}>
              <b>{count(o.jobs[state])}</b>
              <Status word={word} />
            </Link>
          ))}
        </div>
      </Figure>
    </div>
  );
}

function Figure({ slug, title, className, children }: { slug: string; title: MessageKey; className?: string; children: ReactNode }) {
  const { t } = useWords();
  const id = useId();
  return (
    <div role="group" className={`figure ${className ?? ""}`} aria-labelledby={id} data-testid={`panel-${slug}`}>
      <h2 id={id} title={t(title)}>
        {t(title)}
      </h2>
      {children}
    </div>
  );
}

function Big({ children, beside, bad }: { children: ReactNode; beside?: string; bad?: boolean }) {
  return (
    <div className="big">
      <span>{children}</span>
      {beside !== undefined && <span className={`beside num ${bad ? "bad" : ""}`}>{beside}</span>}
    </div>
  );
}

function Share({ slug, title, value, fraction, children }: { slug: string; title: MessageKey; value: number | null; fraction: string; children: ReactNode }) {
  return (
    <Figure slug={slug} title={title}>
      <Big>{percent(value)}</Big>
      {children}
      <div className="fraction num">{fraction}</div>
    </Figure>
  );
}

function SummaryLine({ slug, word, counts }: { slug: string; word: string; counts: { total: number; allocated: number; unhealthy: number } }) {
  const { t } = useWords();
  return (
    <div className="line" data-testid={`summary-${slug}`}>
      <span className="dim">{word}</span>
      <span>
        <b>{gpus(counts.total)}</b>
        {t("overview.total")}
      </span>
      <span>
        <b>{gpus(counts.allocated)}</b>
        {t("overview.allocated")}
      </span>
      <span className={counts.unhealthy > 0 ? "bad" : ""}>
        <b>{gpus(counts.unhealthy)}</b>
        {t("overview.unhealthy")}
      </span>
      <Meter label={`${word}: ${gpus(counts.allocated)} / ${gpus(counts.total)}`} total={counts.total} allocated={counts.allocated} broken={counts.unhealthy} />
    </div>
  );
}
