// What is checked before a write: all checks, each with what mends it; and a way to check again.
import { shown } from "../format/shown";
import { useWords } from "../i18n/locale";

export interface Check {
  readonly check: string;
  readonly state: string;
  readonly sentence: string;
  readonly mend: string;
}

const WORST_FIRST = ["fail", "warn", "unknown", "ok"];
const TONES: Readonly<Record<string, string>> = { fail: "bad", warn: "wait", ok: "good", unknown: "unknown" };

/** All checks; those that are passed are folded. */
export function Checks({ of: checks, isBusy, testId, onAgain }: { of: readonly Check[]; isBusy: boolean; testId: string; onAgain: () => void }) {
  const { t } = useWords();
  const sorted = checks.toSorted((a, b) => WORST_FIRST.indexOf(a.state) - WORST_FIRST.indexOf(b.state));
  const good = sorted.filter(({ state }) => state === "ok");
  return (
    <section className="form-effects" data-testid={testId} aria-live="polite">
      <h3>
        {t("datasets.checks")}{" "}
        <button type="button" className="toggle" onClick={onAgain} aria-busy={isBusy} data-testid="action-recheck">
          {t("datasets.recheck")}
        </button>
      </h3>
      <ul className="checks">
        {sorted.filter(({ state }) => state !== "ok").map((each) => (
          <CheckLine key={`${each.check} ${each.sentence}`} of={each} />
        ))}
      </ul>
      <details>
        <summary>{t("datasets.passed", { n: good.length })}</summary>
        <ul className="checks">
          {good.map((each) => (
            <CheckLine key={`${each.check} ${each.sentence}`} of={each} />
          ))}
        </ul>
      </details>
    </section>
  );
}

function CheckLine({ of: check }: { of: Check }) {
  const { code } = useWords();
  return (
    <li data-state={check.state} data-testid={`check-${check.check}`}>
      <span className="status" data-tone={TONES[check.state] ?? "unknown"}>
        {code("check", check.check, {}, check.check)}: {code("check.is", check.state, {}, check.state)}
      </span>
      <div lang="en">{shown(check.sentence)}</div>
      {check.mend && (
        <div className="dim" lang="en">
          → {shown(check.mend)}
        </div>
      )}
    </li>
  );
}
