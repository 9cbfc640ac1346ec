// What there is of one job, a tab each. The tab stands in the address: `?tab=logs` is where `arena logviewer` leads.
import { lazy, Suspense, useRef } from "react";
import type { JobDetail } from "../../api/types";
import { useWords } from "../../i18n/locale";
import type { MessageKey } from "../../i18n/translate";
import { EventList } from "../../parts/EventList";
import { Empty, Loading } from "../../parts/States";
import { WhyItWaits } from "../../parts/WhyItWaits";
import { useQueryState } from "../../router/usequery";
import { JobCharts } from "./JobCharts";
import { Instances } from "./JobFacts";
import type { KeptJobId } from "./JobsBoard";
import { areEventsKnown, hasRun } from "./sentence";

const LogPanel = lazy(() => import("./logs/LogPanel").then((m) => ({ default: m.LogPanel })));
const JobCost = lazy(() => import("./JobCost").then((m) => ({ default: m.JobCost })));
const ManifestPanel = lazy(() => import("./ManifestPanel").then((m) => ({ default: m.ManifestPanel })));

const TABS = ["instances", "events", "logs", "charts", "yaml", "cost", "why"] as const;
/** What the ledger has of a job that was deleted. */
const KEPT: readonly Tab[] = ["instances", "cost", "yaml"];
type Tab = (typeof TABS)[number];
const WORDS: Record<Tab, MessageKey> = { instances: "job.instances", events: "job.events", logs: "job.logs", charts: "chart.charts", yaml: "job.yaml", cost: "cost.title", why: "job.why" };

export function JobTabs({ id, detail, filters }: { id: KeptJobId; detail: JobDetail; filters: URLSearchParams }) {
  const { t } = useWords();
  const [params, set] = useQueryState();
  const list = useRef<HTMLDivElement>(null);
  const asked = params.get("tab");
  const tabs = detail.job.live ? TABS : KEPT;
  const tab = tabs.find((each) => each === asked) ?? "instances";
  const step = (by: number) => {
    const next = tabs[(tabs.indexOf(tab) + by + tabs.length) % tabs.length] as Tab;
    set({ tab: next }, "replace");
    list.current?.querySelector<HTMLElement>(`[data-tab="${next}"]`)?.focus();
  };
  return (
    <section data-testid="job-tabs">
      <div className="tabs" role="tablist" aria-label={t("job.tabs")} ref={list}>
        {tabs.map((each) => (
          <button
            key={each}
            type="button"
            role="tab"
            id={`tab-${each}`}
            data-tab={each}
            aria-selected={each === tab}
            aria-controls="tab-body"
            tabIndex={each === tab ? 0 : -1}
            onClick={() => set({ tab: each })}
            onKeyDown={(e) => {
              if (e.key === "ArrowRight" || e.key === "ArrowLeft") {
                e.preventDefault();
                step(e.key === "ArrowRight" ? 1 : -1);
              }
            }}
          >
            {t(WORDS[each])}
          </button>
        ))}
      </div>
      <div className="tab-body" role="tabpanel" id="tab-body" aria-labelledby={`tab-${tab}`}>
        <Suspense fallback={<Loading />}>
          <TabBody tab={tab} id={id} detail={detail} filters={filters} />
        </Suspense>
      </div>
    </section>
  );
}

function TabBody({ tab, id, detail, filters }: { tab: Tab; id: KeptJobId; detail: JobDetail; filters: URLSearchParams }) {
  const { t } = useWords();
  if (tab === "logs") return <LogPanel id={[id[0], id[1], id[2]]} />;
  if (tab === "yaml") return <ManifestPanel id={id} />;
  if (tab === "cost") return <JobCost id={id} />;
  if (tab === "events") return detail.events.length > 0 ? <EventList events={detail.events} /> : <Empty why={t(areEventsKnown(detail) ? "job.noEvents" : "job.eventsUnread")} />;
  if (tab === "why") return detail.job.waiting ? <WhyItWaits waiting={detail.job.waiting} /> : <p data-testid="waits-not">{t("job.waitsNot")}</p>;
  if (tab === "charts") return hasRun(detail.job) ? <JobCharts filters={filters} /> : <p className="dim" data-testid="never-ran">{t("job.neverRan")}</p>;
  return detail.instances.length > 0 ? <Instances detail={detail} /> : <Empty why={t("job.noInstances")} />;
}
