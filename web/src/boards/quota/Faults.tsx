// What is wrong with the quota tree, one sentence each. While one of them stops the plan, nothing is admitted and nothing evicted.
import type { TreeFault } from "../../api/types";
import { useWords } from "../../i18n/locale";

const SHOWN = 20;

export function Faults({ faults }: { faults: readonly TreeFault[] }) {
  const { t } = useWords();
  if (faults.length === 0) return null;
  const isBroken = faults.some((fault) => fault.level === "error");
  return (
    <div className={isBroken ? "banner broken" : "banner"} role="status" data-testid="quota-faults">
      <div>
        {faults.some((fault) => fault.stops) && <b>{t("quota.stopped")}</b>}
        <ul className="faults">
          {faults.slice(0, SHOWN).map((fault) => (
            <li key={`${fault.code} ${fault.message}`}>
              <span className="mono dim">{fault.code}</span> <span lang="en">{fault.message}</span>
            </li>
          ))}
        </ul>
        {faults.length > SHOWN && <span className="dim">{t("quota.moreFaults", { n: faults.length - SHOWN })}</span>}
      </div>
    </div>
  );
}
