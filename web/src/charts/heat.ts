// The number of series of a heat map, and its note.
import { count } from "../format/format";
import type { Words } from "../i18n/locale";

export const TOP_ALL = 50;

/** All series if they fit; otherwise the note has the number of omitted ones. */
export function heatWord(total: number, t: Words["t"]): string {
  return total > TOP_ALL ? t("chart.heatTop", { n: count(TOP_ALL), total: count(total) }) : t("chart.heat", { n: count(total) });
}
