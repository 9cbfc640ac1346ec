// How many series does a heat map hold, and does it say so?
import { count } from "../format/format";
import type { Words } from "../i18n/locale";

export const TOP_ALL = 50;

/** All of them where all fit; else the word says how many are left out. */
export function heatWord(total: number, t: Words["t"]): string {
  return total > TOP_ALL ? t("chart.heatTop", { n: count(TOP_ALL), total: count(total) }) : t("chart.heat", { n: count(total) });
}
