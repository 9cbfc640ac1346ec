// What the money of GPUs was spent on: one bar, and its parts with hours and money beside it.
import type { GpuMoney } from "../../api/types";
import { heldHours, money, percent, share } from "../../format/format";
import { useWords } from "../../i18n/locale";
import { partWord } from "../usage/words";
import { splitOf } from "./split";

export function SplitBar({ of, label, isSmall = false }: { of: GpuMoney; label: string; isSmall?: boolean }) {
  const { t } = useWords();
  const parts = splitOf(of).filter((part) => part.hours > 0);
  const words = parts.map((part) => `${partWord(part.part, t)} ${percent(share(part.hours, of.gpuHours))}`).join(", ");
  return (
    <div className={isSmall ? "split small" : "split"} role="img" aria-label={`${label}: ${words}`} title={words}>
      {parts.map(({ part, hours }) => (
        <i key={part} className={`split-${part}`} style={{ flexGrow: share(hours, of.gpuHours) ?? 0 }} />
      ))}
    </div>
  );
}

/** All parts, also those that are 0: what was not wasted is an answer, too. */
export function SplitList({ of, currency }: { of: GpuMoney; currency: string }) {
  const { t } = useWords();
  return (
    <ul className="split-list" data-testid="idle-split">
      {splitOf(of).map(({ part, hours, cost }) => (
        <li key={part} data-part={part}>
          <i className={`split-${part}`} aria-hidden="true" />
          <span>{partWord(part, t)}</span>
          <span className="num">
            {percent(share(hours, of.gpuHours))}
            <span className="dim"> · {t("idle.hours", { hours: heldHours(hours) })}</span>
            {currency !== "" && <span className="dim"> · {money(cost)}</span>}
          </span>
        </li>
      ))}
    </ul>
  );
}

