// The period of a page of the ledger: one of a few, a month, or two days.
import { useNow } from "../../app/clock";
import { useWords } from "../../i18n/locale";
import type { MessageKey } from "../../i18n/translate";
import { Choices } from "../../parts/Choices";
import { useQueryState } from "../../router/usequery";
import { monthsKept, type PeriodName, PERIODS, periodChange, periodOf } from "./period";

const WORDS: Readonly<Record<PeriodName, MessageKey>> = { "24h": "usage.24h", "7d": "usage.7d", "30d": "usage.30d", month: "usage.month", custom: "usage.custom" };
const MINUTE_MS = 60_000;

export function Period() {
  const { t } = useWords();
  const [params, set] = useQueryState();
  const now = useNow(MINUTE_MS);
  const period = periodOf(params);
  return (
    <>
      <Choices name="period" label={t("usage.period")} value={period} choices={PERIODS.map((value) => ({ value, word: t(WORDS[value]) }))} onChoose={(next) => set(periodChange(next, now))} />
      {period === "month" && (
        <select className="period-field" aria-label={t("usage.month")} value={params.get("month") ?? ""} onChange={(event) => set({ month: event.target.value, page: null })} data-testid="period-month">
          {[...new Set([...monthsKept(now), params.get("month") ?? ""])].map((month) => (
            <option key={month}>{month}</option>
          ))}
        </select>
      )}
      {period === "custom" && (
        <span className="period-days">
          <DayField name="from" label={t("usage.from")} />–<DayField name="to" label={t("usage.to")} />
        </span>
      )}
    </>
  );
}

/** A day, at whose beginning the period begins or ends. */
function DayField({ name, label }: { name: "from" | "to"; label: string }) {
  const [params, set] = useQueryState();
  return <input type="date" className="period-field" aria-label={label} value={(params.get(name) ?? "").slice(0, 10)} onChange={(event) => event.target.value && set({ [name]: event.target.value, page: null })} data-testid={`period-${name}`} />;
}
