// The bar of a quota: used within its minimum, borrowed above, waiting after that; its length is the limit.
import type { CSSProperties } from "react";
import type { QuotaRow } from "../../api/types";
import { amount } from "../../format/format";
import type { Words } from "../../i18n/locale";
import { quotaBar } from "./rows";

const NO_LIMIT = "N/A";
const of100 = (share: number): string => `${(100 * share).toFixed(2)}%`;

/** One element, its parts as backgrounds. */
export function Bar({ of, t }: { of: Pick<QuotaRow, "min" | "max" | "used" | "requested" | "unit">; t: Words["t"] }) {
  const bar = quotaBar(of);
  const { used, min, max, unit } = of;
  const full = bar.within + bar.borrowed;
  const style = {
    "--within": of100(bar.within),
    "--used": of100(full),
    "--asked": of100(full + bar.waiting),
    "--min": of100(min > 0 ? bar.min : -1),
  } as CSSProperties;
  const label = t("quota.barLabel", { used: amount(unit, used), min: amount(unit, min), max: max === null ? NO_LIMIT : amount(unit, max) });
  return <div className={bar.open ? "qbar open" : "qbar"} style={style} role="img" aria-label={label} />;
}
