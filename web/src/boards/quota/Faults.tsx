// What is wrong with the quota tree, one sentence each. While one of them stops the plan, nothing is admitted and nothing evicted.
import type { TreeFault } from "../../api/types";
import { useWords } from "../../i18n/locale";

const SHOWN = 20;

/** Errors are shown; warnings are folded. */
export function Faults({ faults }: { faults: readonly TreeFault[] }) {
  const { t } = useWords();
  const errors = faults.filter((fault) => fault.level === "error");
  const warnings = faults.filter((fault) => fault.level !== "error");
  return (
    <>
      {errors.length > 0 && (
        <div className="banner broken" role="status" data-testid="quota-faults">
          <div>
            {errors.some((fault) => fault.stops) && <b>{t("quota.stopped")}</b>}
            <List faults={errors} />
          </div>
        </div>
      )}
      {warnings.length > 0 && (
        <details className="banner quiet" data-testid="quota-warnings">
          <summary>{t("quota.warnings", { n: warnings.length })}</summary>
          <List faults={warnings} />
        </details>
      )}
    </>
  );
}

/** The English message has names and numbers; another language has the kind of the fault first. */
function List({ faults }: { faults: readonly TreeFault[] }) {
  const { t, code, locale } = useWords();
  return (
    <>
      <ul className="faults">
        {faults.slice(0, SHOWN).map((fault) => (
          <li key={`${fault.code} ${fault.message}`}>
            <span className="mono dim">{fault.code}</span> {locale !== "en" && <b>{code("fault", fault.code, {}, "")}</b>} <span lang="en">{fault.message}</span>
          </li>
        ))}
      </ul>
      {faults.length > SHOWN && <span className="dim">{t("quota.moreFaults", { n: faults.length - SHOWN })}</span>}
    </>
  );
}
