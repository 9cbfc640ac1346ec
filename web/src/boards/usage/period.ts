// Which time does a page of the ledger show? From the address, in the words of the API: a period that ends now, a month, or two fixed ends.
import type { QueryChange } from "../../router/query";

export const PERIODS = ["24h", "7d", "30d", "month", "custom"] as const;
export type PeriodName = (typeof PERIODS)[number];

export const DEFAULT_PERIOD: PeriodName = "30d";
/** Parameters of a period. */
export const PERIOD_KEYS = ["period", "month", "from", "to"] as const;

const DAY_MS = 86_400_000;
const MONTH = /^\d{4}-(0[1-9]|1[0-2])$/;
/** The ledger keeps days for 400 days. */
const MONTHS_KEPT = 14;

const two = (n: number): string => String(n).padStart(2, "0");

/** `2026-11` of the browser's day. */
export function monthOf(ms: number): string {
  const day = new Date(ms);
  return `${day.getFullYear()}-${two(day.getMonth() + 1)}`;
}

/** `2026-11-05` of the browser's day. */
export function dayOf(ms: number): string {
  return `${monthOf(ms)}-${two(new Date(ms).getDate())}`;
}

/** The present month and those before, the newest first. */
export function monthsKept(now: number): readonly string[] {
  const day = new Date(now);
  return Array.from({ length: MONTHS_KEPT }, (_, back) => monthOf(new Date(day.getFullYear(), day.getMonth() - back, 1).getTime()));
}

export function periodOf(params: URLSearchParams): PeriodName {
  if (params.has("from") || params.has("to")) return "custom";
  if (MONTH.test(params.get("month") ?? "")) return "month";
  return PERIODS.find((each) => each === params.get("period")) ?? DEFAULT_PERIOD;
}

const DAY = /^(\d{4})-(\d{2})-(\d{2})$/;

/** A day of the address as the time at which it begins for the browser, as its times are shown. */
function momentOf(text: string): string {
  const day = DAY.exec(text);
  return day ? new Date(Number(day[1]), Number(day[2]) - 1, Number(day[3])).toISOString() : text;
}

/** What of the address is asked of the server. */
export function periodQuery(params: URLSearchParams): URLSearchParams {
  const period = periodOf(params);
  if (period === "custom") return new URLSearchParams(["from", "to"].flatMap((key) => (params.get(key) ? [[key, momentOf(params.get(key) as string)]] : [])));
  if (period === "month") return new URLSearchParams({ month: params.get("month") as string });
  return new URLSearchParams({ period });
}

/** The address of another period. A custom one begins as the seven days before today. */
export function periodChange(period: PeriodName, now: number): QueryChange {
  const none: QueryChange = { period: null, month: null, from: null, to: null, page: null };
  if (period === "month") return { ...none, month: monthOf(now) };
  if (period === "custom") return { ...none, from: dayOf(now - 7 * DAY_MS), to: dayOf(now) };
  return { ...none, period: period === DEFAULT_PERIOD ? null : period };
}
