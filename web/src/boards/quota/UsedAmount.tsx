// Usage of a quota; above its max with the excess.
import { amount, amountUnit } from "../../format/format";
import type { Words } from "../../i18n/locale";
import { unitWord } from "../../i18n/units";

/** The width of a column in which the words fit. */
export const OVER_WIDTH = 128;

/** "" where nothing is used above the max. */
export function overMaxWords(unit: string, over: number, t: Words["t"]): string {
  return over > 0 ? t("quota.overMax", { n: `${amount(unit, over)} ${unitWord(amountUnit(unit), t)}`.trim() }) : "";
}

/** `text`: what is used, as the column shows it. */
export function UsedAmount({ text, unit, over, t }: { text: string; unit: string; over: number; t: Words["t"] }) {
  const words = overMaxWords(unit, over, t);
  if (!words) return text;
  return (
    <span className="over-max">
      {text}
      <span className="flag" title={t("quota.overMaxMeans")}>
        {words}
      </span>
    </span>
  );
}
