// Usage and cost: who used GPUs in a period, for how many hours, how much of it idle, and what it cost. From the ledger alone, also of what was deleted.
import { Button } from "antd";
import { useMemo, useState } from "react";
import { useMe, useUsage } from "../../api/queries";
import type { UsageList, UsageRow } from "../../api/types";
import { useNow } from "../../app/clock";
import { heldHours, money, percent } from "../../format/format";
import { useWords } from "../../i18n/locale";
import { Choices } from "../../parts/Choices";
import { Meter } from "../../parts/Meter";
import { PageHead } from "../../parts/PageHead";
import { Empty, FailedRefresh, Warnings } from "../../parts/States";
import { listQuery } from "../../router/query";
import { useQueryState } from "../../router/usequery";
import { SearchFilter } from "../../table/Filters";
import { ListTable } from "../../table/ListTable";
import { useKept } from "../../table/useKept";
import { BY, BY_WORDS, usageColumns, usageKey } from "./columns";
import { DayBars } from "./DayBars";
import { Period } from "./Period";
import { monthOf, periodOf, periodQuery } from "./period";
import { PricesDialog } from "./PricesDialog";
import { ReportDialog } from "./ReportDialog";
import { Unrecorded } from "./Unrecorded";

const FILTERS = ["q"] as const;
const HOUR_MS = 3_600_000;

export function UsageBoard() {
  const words = useWords();
  const { t } = words;
  const [params, set] = useQueryState();
  const by = BY.find((each) => each === params.get("by")) ?? "user";
  const asking = useMemo(() => new URLSearchParams([...periodQuery(params), ["by", by], ...listQuery(params, ["q", "sort"])]), [params, by]);
  const ofDays = useMemo(() => new URLSearchParams([...periodQuery(params), ["by", by]]), [params, by]);
  const asked = useKept(useUsage(asking), asking);
  const answer = asked.data;
  const currency = answer?.currency ?? "";
  const columns = useMemo(() => usageColumns(words, by, currency), [words, by, currency]);
  return (
    <main className="page" data-testid="page-usage">
      <PageHead title={t("title.usage")} answer={answer} onRefresh={() => void asked.refetch()} />
      <div className="filters">
        <Period />
        <Choices name="by" label={t("usage.by")} value={by} choices={BY.map((value) => ({ value, word: t(BY_WORDS[value]) }))} onChoose={(next) => set({ by: next === "user" ? null : next, sort: null, page: null })} />
        <ForAdmins params={params} />
        <div className="end">
          <SearchFilter params={params} set={set} placeholder={t("usage.search")} />
        </div>
      </div>
      <Warnings of={[answer?.warnings]} />
      <FailedRefresh asked={[asked]} />
      {answer && <Unrecorded period={answer.period} unpriced={answer.unpriced} hasPrices={currency !== ""} />}
      {answer && <Figures answer={answer} />}
      {answer && <DayBars params={ofDays} by={t(BY_WORDS[by])} />}
      <ListTable<UsageRow>
        name={`usage-${by}`}
        slug="usage"
        title={t("usage.table", { by: t(BY_WORDS[by]) })}
        path="/usage"
        command="usage"
        asked={asked}
        asking={asked.shown}
        filters={FILTERS}
        columns={columns}
        rowKey={usageKey}
        noneMatch={t("usage.noneMatch")}
        none={<Empty why={t("usage.none")}>{t("usage.noneNext")}</Empty>}
      />
    </main>
  );
}

/** The report of the month that is chosen, else of the present one; and the prices. */
function ForAdmins({ params }: { params: URLSearchParams }) {
  const { t } = useWords();
  const now = useNow(HOUR_MS);
  const isAdmin = useMe().data?.user.role === "admin";
  const [arePrices, setPrices] = useState(false);
  const [isReport, setReport] = useState(false);
  if (!isAdmin) return null;
  const month = (periodOf(params) === "month" && params.get("month")) || monthOf(now);
  return (
    <>
      <Button onClick={() => setReport(true)} data-testid="action-report">
        {t("report.title")}
      </Button>
      <Button onClick={() => setPrices(true)} data-testid="action-prices">
        {t("prices.title")}
      </Button>
      {isReport && <ReportDialog month={month} onClose={() => setReport(false)} />}
      {arePrices && <PricesDialog onClose={() => setPrices(false)} />}
    </>
  );
}

function Figures({ answer: { totals, currency } }: { answer: UsageList }) {
  const { t } = useWords();
  return (
    <div className="figures" data-testid="usage-figures">
      <section className="figure">
        <h2>{t("usage.gpuHours")}</h2>
        <div className="big" data-testid="usage-gpu-hours">
          {heldHours(totals.gpuHours)}
        </div>
        <span className="fraction num">{t("usage.podDays", { n: totals.pods })}</span>
      </section>
      <section className="figure idle-figure">
        <h2>{t("usage.idleShare")}</h2>
        <div className="big">{percent(totals.idlePercent)}</div>
        <Meter label={`${t("usage.idleShare")}: ${percent(totals.idlePercent)}`} total={100} allocated={totals.idlePercent} />
        <span className="fraction num">{t("usage.unknownBeside", { percent: percent(totals.unknownPercent) })}</span>
      </section>
      <section className="figure">
        <h2>{t("usage.cost")}</h2>
        <div className="big" data-testid="usage-cost">
          {money(totals.cost)} {totals.cost !== null && <span className="beside">{currency}</span>}
        </div>
        <span className="fraction num">{currency === "" ? t("usage.noPrice") : t("usage.listBeside", { cost: money(totals.listCost), saved: percent(totals.savedPercent) })}</span>
        {currency !== "" && totals.unpricedGpuHours > 0 && <span className="fraction num">{t("usage.unpricedBeside", { hours: heldHours(totals.unpricedGpuHours) })}</span>}
      </section>
      <section className="figure">
        <h2>{t("usage.coreHours")}</h2>
        <div className="big">{heldHours(totals.coreHours)}</div>
        <span className="fraction num">{t("usage.memoryBeside", { memory: heldHours(totals.memoryGibHours), gpuMemory: heldHours(totals.gpuMemoryGibHours) })}</span>
      </section>
    </div>
  );
}
