// How does a number look? One function per kind of quantity. Unknown (`null`) is always "—", a zero only where zero was observed.

export const UNKNOWN = "—";

type Maybe = number | null | undefined;

const isKnown = (n: Maybe): n is number => typeof n === "number" && Number.isFinite(n);

const groups = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const oneDecimal = new Intl.NumberFormat("en", { minimumFractionDigits: 1, maximumFractionDigits: 1 });

/** A count: `5,000`. */
export function count(n: Maybe): string {
  return isKnown(n) ? groups.format(n) : UNKNOWN;
}

/** Whole GPUs as integer, fractions of shared cards with one decimal: `8`, `1.5`. A sliver is not nothing: `<0.1`. */
export function gpus(n: Maybe): string {
  if (!isKnown(n)) return UNKNOWN;
  if (n > 0 && n < 0.05) return "<0.1";
  const shown = Math.floor(Math.round(n * 1e7) / 1e6 + 0.5) / 10; // halves up, as sentences and arena round
  return Number.isInteger(shown) ? groups.format(shown) : oneDecimal.format(shown);
}

const MIB_PER_TIB = 1024 * 1024;
/** From 10,000 GiB the next unit is clearer. */
const isLarge = (mib: number): boolean => Math.abs(mib) >= 10_000 * 1024;

/** MiB in: GiB with one decimal, MiB below one GiB, TiB from 10,000 GiB on. */
export function memory(mib: Maybe): string {
  if (!isKnown(mib)) return UNKNOWN;
  if (mib !== 0 && Math.abs(mib) < 1024) return `${groups.format(mib)} MiB`;
  return isLarge(mib) ? `${oneDecimal.format(mib / MIB_PER_TIB)} TiB` : `${oneDecimal.format(mib / 1024)} GiB`;
}

/** The same for a column with GiB in its head: `640.0`, with the unit only if it differs. */
export function memoryInGib(mib: Maybe): string {
  return memory(mib).replace(" GiB", "");
}

/** Exactly, where a limit is meant: `4,308 MiB`. */
export function exactMemory(mib: Maybe): string {
  return isKnown(mib) ? `${groups.format(mib)} MiB` : UNKNOWN;
}

/** Used of total in the unit of the total: `312.4 / 480.0 GiB`. */
export function memoryFraction(used: Maybe, total: Maybe): string {
  if (isKnown(total) && total >= 1024) {
    const [per, unit] = isLarge(total) ? ([MIB_PER_TIB, "TiB"] as const) : ([1024, "GiB"] as const);
    const part = isKnown(used) ? oneDecimal.format(used / per) : UNKNOWN;
    return `${part} / ${oneDecimal.format(total / per)} ${unit}`;
  }
  return `${isKnown(used) ? groups.format(used) : UNKNOWN} / ${memory(total)}`;
}

/** Units of a shared card, or of all of a node: `12 / 14`; a dash where there is nothing to divide. */
export function units(allocated: number, total: number): string {
  return total > 0 || allocated > 0 ? `${count(allocated)} / ${count(total)}` : UNKNOWN;
}

/** 0..100 in: `63.5%`. */
export function percent(value: Maybe): string {
  return isKnown(value) ? `${oneDecimal.format(value)}%` : UNKNOWN;
}

/** The share of a total as 0..100; `null` where the total is zero or a side is unknown: never NaN. */
export function share(part: Maybe, total: Maybe): number | null {
  return isKnown(part) && isKnown(total) && total > 0 ? (100 * part) / total : null;
}

/** `8s`, `3m12s`, `2h5m`, `3d4h`: two units at most, the smaller left out when zero. */
export function duration(seconds: Maybe): string {
  if (!isKnown(seconds)) return UNKNOWN;
  const s = Math.max(0, Math.floor(seconds));
  if (s < 60) return `${s}s`;
  if (s < 3600) return pair(Math.floor(s / 60), "m", s % 60, "s");
  if (s < 86400) return pair(Math.floor(s / 3600), "h", Math.floor((s % 3600) / 60), "m");
  return pair(Math.floor(s / 86400), "d", Math.floor((s % 86400) / 3600), "h");
}

function pair(big: number, bigUnit: string, small: number, smallUnit: string): string {
  return small ? `${big}${bigUnit}${small}${smallUnit}` : `${big}${bigUnit}`;
}

export interface Span {
  readonly n: number;
  readonly unit: "s" | "m" | "h" | "d";
}

/** The largest whole unit, for "3h ago", where a second unit would be noise. */
export function span(seconds: number): Span {
  const s = Math.max(0, Math.floor(seconds));
  if (s < 60) return { n: s, unit: "s" };
  if (s < 3600) return { n: Math.floor(s / 60), unit: "m" };
  if (s < 86400) return { n: Math.floor(s / 3600), unit: "h" };
  return { n: Math.floor(s / 86400), unit: "d" };
}

const BYTES_PER_GIB = 1024 ** 3;

/** A quota amount. `unit` is the server's (`cores`, `bytes`, `GiB`, `count`); bytes are shown as GiB, which `amountUnit` names in the head. */
export function amount(unit: string, value: Maybe): string {
  if (!isKnown(value)) return UNKNOWN;
  if (unit === "bytes") return oneDecimal.format(value / BYTES_PER_GIB);
  return Number.isInteger(value) ? groups.format(value) : oneDecimal.format(value);
}

export function amountUnit(unit: string): string {
  if (unit === "bytes") return "GiB";
  return unit === "count" ? "" : unit;
}

const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });

export function timeOfDay(ms: number): string {
  return clock.format(ms);
}

const two = (n: number): string => String(n).padStart(2, "0");

const DAY_LETTERS = "2026-01-05".length;

/** `2026-01-05 09:14:22` in the browser's zone: sortable by eye and the same in every language. */
export function exactTime(ms: number | null): string {
  if (!isKnown(ms)) return UNKNOWN;
  const d = new Date(ms);
  return `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())} ${timeOfDay(ms)}`;
}

/** From when to when; the day of the end where it is another one. */
export function exactRange(from: number, to: number): string {
  const [begin, end] = [exactTime(from), exactTime(to)];
  return `${begin} – ${begin.slice(0, DAY_LETTERS) === end.slice(0, DAY_LETTERS) ? end.slice(DAY_LETTERS + 1) : end}`;
}

/** RFC 3339 → epoch milliseconds; `null` for anything that is not a time. */
export function parseTime(text: string | null | undefined): number | null {
  if (!text) return null;
  const ms = Date.parse(text);
  return Number.isNaN(ms) ? null : ms;
}

const money2 = new Intl.NumberFormat("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 });
const moneySmall = new Intl.NumberFormat("en", { maximumSignificantDigits: 2 });
const CENT = 0.01;

/** An amount of money as a decimal text: `1,234.50`; below one cent two digits: `0.0012`. `null`: without a price. */
export function money(text: string | null | undefined): string {
  const value = text === null || text === undefined || text === "" ? Number.NaN : Number(text);
  if (!Number.isFinite(value)) return UNKNOWN;
  return value !== 0 && Math.abs(value) < CENT ? moneySmall.format(value) : money2.format(value);
}

/** Hours of something held: one decimal; a little is not nothing: `<0.1`. */
export function heldHours(n: Maybe): string {
  if (!isKnown(n)) return UNKNOWN;
  return n > 0 && n < 0.05 ? "<0.1" : oneDecimal.format(n);
}
