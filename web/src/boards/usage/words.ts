// What rows of the ledger, and the parts of GPU-hours and of their money, are called.
import type { UsageRow } from "../../api/types";
import { shown } from "../../format/shown";
import type { Words } from "../../i18n/locale";
import { isMessageKey } from "../../i18n/translate";

/** `busy`, `idle`, `unknown`, `used`, `free`, `stranded`, `broken`. */
export function partWord(part: string, t: Words["t"]): string {
  const key = `usage.part.${part}`;
  return isMessageKey(key) ? t(key) : part;
}

/** The name of a row; of the time that has no user, leaf, job or model, that. */
export function usageName(row: Pick<UsageRow, "name" | "namespace">, by: string, t: Words["t"]): string {
  if (row.name !== "") return by === "job" ? `${shown(row.namespace)}/${shown(row.name)}` : shown(row.name);
  const key = `usage.without.${by}`;
  const without = isMessageKey(key) ? t(key) : "—";
  return by === "job" && row.namespace !== "" ? `${shown(row.namespace)} · ${without}` : without;
}

/** A price's labels: `gpu-model=A100, zone=a`; none of them: every node. */
export function labelsText(labels: Readonly<Record<string, string>>, t: Words["t"]): string {
  const pairs = Object.entries(labels).map(([key, value]) => `${shown(key)}=${shown(value)}`);
  return pairs.length > 0 ? pairs.join(", ") : t("usage.everyNode");
}
