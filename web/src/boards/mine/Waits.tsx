// My waiting jobs and pods, with reason and queue.
import type { MyWait } from "../../api/types";
import { count, gpus } from "../../format/format";
import { shown } from "../../format/shown";
import { useWords } from "../../i18n/locale";
import { Ago } from "../../parts/Ago";
import { Panel } from "../../parts/Panel";
import { WhyItWaits } from "../../parts/WhyItWaits";
import { Link } from "../../router/Link";

export function Waits({ waits }: { waits: readonly MyWait[] }) {
  const { t } = useWords();
  return (
    <Panel slug="my-waits" title={t("mine.waits")} note={count(waits.length)} className="mine" flush>
      <ul className="list">
        {waits.map((wait) => (
          <li key={`${wait.namespace}/${wait.job || wait.name}`} data-testid="my-wait">
            <div className="grow">
              <Thing of={wait} /> <span className="dim">{asked(wait, t("unit.gpus"))}</span>
              <Line of={wait} />
              <WhyItWaits waiting={wait.waiting} />
            </div>
            <span className="when">
              <Ago at={wait.since} />
            </span>
          </li>
        ))}
      </ul>
    </Panel>
  );
}

const asked = (wait: MyWait, word: string): string => (wait.gpus > 0 ? `${gpus(wait.gpus)} ${word}` : wait.units > 0 ? `${count(wait.units)} gpu-mem` : "");

function Thing({ of: it }: { of: Pick<MyWait, "namespace" | "name" | "job"> }) {
  const words = `${it.namespace}/${it.name}`;
  if (!it.job) return <b className="mono">{shown(words)}</b>;
  return (
    <Link className="mono" to={`/jobs/${[it.namespace, ...it.job.split("/")].map(encodeURIComponent).join("/")}`}>
      {words}
    </Link>
  );
}

/** The place in its queue, and the nearest of those before it. */
function Line({ of: wait }: { of: MyWait }) {
  const { t } = useWords();
  if (wait.line === null || wait.position === null) return null;
  return (
    <p data-testid="my-place">
      {t(wait.line === "quota" ? "mine.inLeaf" : "mine.inScheduler", { place: count(wait.position) })}
      {wait.ahead.length > 0 && `${t("mine.behind")} `}
      {wait.ahead.map((each, index) => (
        <span key={`${each.namespace}/${each.name}`}>
          {index > 0 && ", "}
          <Thing of={each} />
          {each.user && <span className="dim"> ({shown(each.user)})</span>}
        </span>
      ))}
      {wait.aheadCount > wait.ahead.length && ` ${t("attention.more", { n: count(wait.aheadCount - wait.ahead.length) })}`}
    </p>
  );
}
