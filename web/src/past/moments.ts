// Which moments of the past does the slider stand on? Pure: steps, bounds, gaps, and the words of the address.
import { exactTime, parseTime } from "../format/format";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

/** How far one press of an arrow goes, and one step of play. */
export const STEPS = { "10m": 10 * MINUTE, "1h": HOUR, "6h": 6 * HOUR, "1d": 24 * HOUR } as const;
export type Step = keyof typeof STEPS;

export const isStep = (text: string | null): text is Step => text !== null && Object.hasOwn(STEPS, text);

export interface Times {
  readonly first: number;
  readonly last: number;
  readonly gaps: readonly { readonly start: number; readonly end: number }[];
}

/** `null`: nothing is recorded yet. */
export function timesOf(answer: { readonly first: string | null; readonly last: string | null; readonly gaps: readonly { readonly start: string; readonly end: string }[] } | undefined): Times | null {
  const first = parseTime(answer?.first);
  const last = parseTime(answer?.last);
  if (first === null || last === null || !answer) return null;
  const gaps = answer.gaps.map((gap) => ({ start: parseTime(gap.start) ?? first, end: parseTime(gap.end) ?? last }));
  return { first, last, gaps };
}

/** The moment within the bounds, in whole seconds: an address stays short. */
export function within(times: Times, at: number): number {
  return Math.min(Math.floor(times.last / 1000) * 1000, Math.max(Math.ceil(times.first / 1000) * 1000, Math.round(at / 1000) * 1000));
}

/** One step on, over a gap, whose moments all show the same; `null` beyond the last moment. */
export function stepped(times: Times, at: number, by: number): number | null {
  const to = at + by;
  if (to > times.last) return null;
  const gap = times.gaps.find((each) => each.start <= to && to < each.end);
  const next = gap === undefined ? to : by > 0 ? gap.end : gap.start - 1000;
  return within(times, next);
}

export const gapAt = (times: Times, at: number) => times.gaps.find((each) => each.start <= at && at < each.end) ?? null;

/** Where gaps are on the track, in percent of its length; a short one can be seen, too. */
export function gapMarks(times: Times): readonly { readonly left: number; readonly width: number }[] {
  const whole = Math.max(1, times.last - times.first);
  return times.gaps.map((gap) => ({ left: (100 * (gap.start - times.first)) / whole, width: Math.max(0.3, (100 * (gap.end - gap.start)) / whole) }));
}

/** `at` of an address: `2026-11-20T02:00:00Z`. */
export const addressOf = (at: number): string => new Date(at).toISOString().replace(".000Z", "Z");

/** For `<input type="datetime-local">`, in the browser's zone. */
export const fieldOf = (at: number): string => exactTime(at).replace(" ", "T");
