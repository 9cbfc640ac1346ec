// The bars of the days of a period: by row, or by whether the GPUs were used.
import type { UsageDays } from "../../api/types";

export interface Bar {
  readonly day: string;
  /** GPU-hours, in the order of the parts. */
  readonly parts: readonly number[];
  readonly total: number;
}

export const USE_PARTS = ["busy", "idle", "unknown"] as const;

export function barsOf({ days }: Pick<UsageDays, "days">, isUse: boolean): readonly Bar[] {
  return days.map((day) => {
    const parts = isUse ? [day.busy, day.idle, day.unknown] : day.rows;
    return { day: day.day, parts, total: parts.reduce((sum, hours) => sum + hours, 0) };
  });
}

/** The end of the axis: the highest bar, rounded up to 1, 2 or 5 times a power of ten. */
export function axisEnd(bars: readonly Bar[]): number {
  const highest = Math.max(0, ...bars.map((bar) => bar.total));
  if (highest === 0) return 0;
  const power = 10 ** Math.floor(Math.log10(highest));
  return [1, 2, 5, 10].map((n) => n * power).find((end) => end >= highest) ?? 10 * power;
}
