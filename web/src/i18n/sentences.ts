// A sentence of the server in the reader's language: its numbers are written as everywhere, amounts get the name of their resource.
import type { Sentence } from "../api/types";
import { amount, count, duration, gpus, money } from "../format/format";
import type { Words } from "./locale";
import type { Values } from "./translate";
import { unitWord } from "./units";

/** What the catalogue's sentence is filled with. */
export function sentenceValues(values: Sentence["values"], t: Words["t"]): Values {
  const numbers = Object.entries(values).map(([key, value]) => [key, typeof value === "number" ? gpus(value) : value]);
  const { asked, resource, labels, cards, waitSeconds, unit, units } = values;
  const more: Record<string, string> = {};
  if (typeof waitSeconds === "number") more["wait"] = duration(waitSeconds);
  if (typeof asked === "number" && typeof resource === "string") more["asked"] = amountOf(resource, asked, t);
  if (typeof labels === "string") more["where"] = labels && t("why.withLabels", { labels });
  if (typeof cards === "number") more["onCards"] = cards === 1 ? t("why.onOneCard") : t("why.onCards", { cards: count(cards) });
  if (typeof unit === "string" && units === undefined && typeof values["min"] === "number") more["min"] = `${amount("count", values["min"])} ${unitWord(unit, t)}`.trim();
  if (typeof values["cost"] === "string" && "currency" in values) more["cost"] = money(values["cost"]);
  return { ...Object.fromEntries(numbers), ...more };
}

export function sentenceWords({ code: of, values, text }: Sentence, { t, code }: Pick<Words, "t" | "code">): string {
  const { kind } = values;
  const { xid, meaning: english } = values;
  const xidName = typeof xid === "number" && typeof english === "string" ? { meaning: code("xid", String(xid), {}, english) } : {};
  const fault = typeof kind === "string" ? { kind: code("fault", kind, {}, kind) } : {};
  return code("sentence", of, { ...sentenceValues(values, t), ...fault, ...xidName }, text);
}

/** `4 GPUs`, `1.5 cores`, `38.2 GiB of memory`. */
function amountOf(resource: string, n: number, t: Words["t"]): string {
  switch (resource) {
    case "nvidia.com/gpu":
      return t("amount.gpus", { n: gpus(n) });
    case "cpu":
      return t("amount.cores", { n: amount("count", n) });
    case "memory":
      return t("amount.memory", { n: amount("count", n) });
    default:
      return t("amount.other", { n: amount("count", n), resource });
  }
}
