// What can be asked of a simulated cluster's time? Pure: words to orders, what is asked again, how far a run is.
import type { ClockFace, ClockOrder } from "../api/types";
import { parseTime } from "../format/format";

export const SPEEDS = [1, 10, 60, 600] as const;
/** Seconds of the buttons "go ahead". */
export const SPANS = [60, 600, 3600, 86_400] as const;
/** From here on a run is asked again: time never goes back. */
export const ASKED_AGAIN_SECONDS = 86_400;
export const SLOWEST = 0.01;
export const FASTEST = 100_000;

const SPAN = /^(?:(\d+)d)?\s*(?:(\d+)h)?\s*(?:(\d+)m)?\s*(?:(\d+)s)?$/;

/** `90s`, `1h30m`, `2d` in seconds; `null` for anything else, and for no time at all. */
export function parseSpan(text: string): number | null {
  const found = SPAN.exec(text.trim());
  if (!found || text.trim() === "") return null;
  const [d, h, m, s] = found.slice(1).map((part) => Number(part ?? 0)) as [number, number, number, number];
  return ((d * 24 + h) * 60 + m) * 60 + s || null;
}

/** A speed that the server takes; `null` for anything else. */
export function parseSpeed(text: string): number | null {
  const value = text.trim() === "" ? Number.NaN : Number(text.trim().replace(/^[×x]/, ""));
  return value >= SLOWEST && value <= FASTEST ? value : null;
}

/** The order to run until the value of a `datetime-local` field in the browser's zone; `null` unless it is later than `now`. */
export function untilOrder(text: string, now: number): ClockOrder | null {
  const at = parseTime(text);
  return at !== null && at > now ? { action: "until", until: new Date(at).toISOString() } : null;
}

/** Where an order leads, in ms; `null` for one that leads nowhere. */
export function targetOf(order: ClockOrder, now: number): number | null {
  if (order.action === "advance") return now + (order.seconds ?? 0) * 1000;
  return order.action === "until" ? parseTime(order.until) : null;
}

export function isAskedAgain(order: ClockOrder, now: number): boolean {
  const target = targetOf(order, now);
  return target !== null && target - now >= ASKED_AGAIN_SECONDS * 1000;
}

/** 0..100 of a run; `null` where none goes on. */
export function progressOf(face: Pick<ClockFace, "now" | "since" | "until">): number | null {
  const [since, now, until] = [parseTime(face.since), parseTime(face.now), parseTime(face.until)];
  if (since === null || now === null || until === null) return null;
  return until > since ? Math.min(100, Math.max(0, (100 * (now - since)) / (until - since))) : 0;
}
