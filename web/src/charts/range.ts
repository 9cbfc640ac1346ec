// Which stretch of time do the charts show? From the address: a window that ends now, or two fixed ends from a drag.

export const WINDOWS = ["30m", "1h", "6h", "24h", "7d"] as const;
export type WindowName = (typeof WINDOWS)[number];

const MINUTES: Readonly<Record<WindowName, number>> = { "30m": 30, "1h": 60, "6h": 360, "24h": 1440, "7d": 10080 };

export interface TimeRange {
  readonly from: number;
  readonly to: number;
  /** Null for a range that was dragged. */
  readonly window: WindowName | null;
}

const isWindow = (text: string | null): text is WindowName => (WINDOWS as readonly string[]).includes(text ?? "");

/** Ends now, rounded down to `stepMs` so that charts asked within one step ask the same. */
export function rangeOf(params: URLSearchParams, fallback: WindowName, now: number, stepMs = 15_000): TimeRange {
  const from = Number(params.get("from"));
  const to = Number(params.get("to"));
  if (from > 0 && to > from) return { from, to, window: null };
  const name = params.get("window");
  const window = isWindow(name) ? name : fallback;
  const end = Math.floor(now / stepMs) * stepMs;
  return { from: end - MINUTES[window] * 60_000, to: end, window };
}

/** Whether charts reach so far back. `historySeconds` null: unknown, so it may be requested. */
export const isKept = (window: WindowName, historySeconds: number | null): boolean => historySeconds === null || MINUTES[window] * 60 <= historySeconds;

/** Two clicks' worth of time is a slip of the hand, not a choice. */
export const RANGE_MIN_MS = 30_000;
