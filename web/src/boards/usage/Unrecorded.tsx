// What a page of the ledger does not know: times without a recorder, and nodes without a price.
import type { UnpricedClass, UsagePeriod } from "../../api/types";
import { exactRange, heldHours, parseTime } from "../../format/format";
import { useWords } from "../../i18n/locale";
import { labelsText } from "./words";

const SHOWN = 5;

const at = (text: string): number => parseTime(text) ?? 0;

export function Unrecorded({ period, unpriced = [], hasPrices }: { period: UsagePeriod; unpriced?: readonly UnpricedClass[]; hasPrices: boolean }) {
  const { t } = useWords();
  const gaps = period.gaps.slice(0, SHOWN).map((gap) => exactRange(at(gap.start), at(gap.end)));
  const more = period.gaps.length - gaps.length;
  return (
    <>
      {period.gaps.length > 0 && (
        <div className="banner" role="status" data-testid="usage-gaps">
          <span>
            {t("usage.gaps", { times: gaps.join(", ") })} {more > 0 && t("usage.more", { n: more })} <span className="hint">{t("usage.gapsHint")}</span>
          </span>
        </div>
      )}
      {hasPrices && unpriced.length > 0 && (
        <details className="banner quiet" data-testid="usage-unpriced">
          <summary>{t("usage.unpriced", { n: unpriced.length })}</summary>
          <ul className="day-list">
            {unpriced.map((each) => (
              <li key={JSON.stringify(each.labels)}>
                <span className="mono">{labelsText(each.labels, t)}</span>: {t("usage.nodeHours", { hours: heldHours(each.nodeHours) })}
              </li>
            ))}
          </ul>
        </details>
      )}
    </>
  );
}
