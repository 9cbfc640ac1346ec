// A job's lifecycle as one bar: the time and duration of each step. The list below has the same as text.
import type { LifeStep } from "../../api/types";
import { duration, exactTime, parseTime } from "../../format/format";
import { useWords } from "../../i18n/locale";
import { isMessageKey } from "../../i18n/translate";
import "./life.css";

export function LifeBar({ life }: { life: readonly LifeStep[] }) {
  const { t } = useWords();
  if (life.length === 0) return null;
  const word = (step: LifeStep) => {
    const key = `life.${wordOf(step)}`;
    if (step.step === "ended") return statusWord(step.status, t);
    return isMessageKey(key) ? t(key, { count: step.count ?? 0, of: step.of ?? 0 }) : step.step;
  };
  return (
    <section className="life" aria-label={t("life.title")} data-testid="job-life">
      <div className="life-bar" aria-hidden="true">
        {life.map((step) => step.seconds !== null && <span key={step.step} data-step={step.step} style={{ flexGrow: Math.max(step.seconds, 1) }} />)}
      </div>
      <ol className="num">
        {life.map((step) => {
          const ms = parseTime(step.at);
          return (
            <li key={step.step} data-step={step.step} data-status={step.status}>
              <b>{word(step)}</b>
              {ms !== null && <time dateTime={step.at}>{exactTime(ms)}</time>}
              {step.seconds !== null && <span className="dim">{duration(step.seconds)}</span>}
            </li>
          );
        })}
      </ol>
    </section>
  );
}

/** While not all pods run, the step has their number. */
export const wordOf = (step: LifeStep): string => (step.step === "running" && step.count !== null && step.count !== step.of ? "runningSome" : step.step);

function statusWord(status: string, t: ReturnType<typeof useWords>["t"]): string {
  const key = `status.${status.toLowerCase()}`;
  return isMessageKey(key) ? t(key) : status;
}
