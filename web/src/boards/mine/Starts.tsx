// What could one pod of mine be given now? One line per model, each with the command that takes it.
import type { MyWork, Start } from "../../api/types";
import { startCommand } from "../../commands/commands";
import { gpus } from "../../format/format";
import { useWords, type Words } from "../../i18n/locale";
import { sentenceWords } from "../../i18n/sentences";
import { Command } from "../../parts/Copy";
import { Panel } from "../../parts/Panel";
import { Empty } from "../../parts/States";
import { clauseWords } from "../../parts/WhyItWaits";
import { Link } from "../../router/Link";

export function Starts({ mine }: { mine: MyWork }) {
  const { t } = useWords();
  const { starts, namespaces } = mine;
  return (
    <Panel slug="starts" title={t("mine.starts")} note={t("mine.startsNote")} className="mine" flush>
      {starts.length === 0 ? (
        <Empty why={t(namespaces.length > 0 ? "mine.noStarts" : "mine.noNamespace")} />
      ) : (
        <ul className="list" data-many={namespaces.length > 1}>
          {starts.map((start) => (
            <Line key={`${start.namespace} ${start.resource} ${start.model}`} start={start} isAlone={namespaces.length === 1} />
          ))}
        </ul>
      )}
    </Panel>
  );
}

function Line({ start, isAlone }: { start: Start; isAlone: boolean }) {
  const words = useWords();
  const { t } = words;
  return (
    <li data-testid={`start-${start.resource}`}>
      <div className="grow">
        <b>{sentenceWords(start.sentence, words)}</b>{" "}
        {start.amount > 0 && (
          <span className="dim">
            {start.nodes === 1 ? <Link className="in-text" to={`/nodes/${encodeURIComponent(start.node)}`}>{t("mine.onNode", { node: start.node })}</Link> : t("mine.onNodes", { nodes: start.nodes })}
            {!isAlone && ` · ${start.namespace}`}
            {start.guaranteed !== null && ` · ${t(start.guaranteed ? "mine.guaranteed" : "mine.borrowed")}`}
          </span>
        )}
        {start.waiting && <div className="dim">{quotaWords(start, words)}</div>}
      </div>
      {start.amount > 0 && <Command text={startCommand(start)} />}
    </li>
  );
}

/** What nodes would give, and what quota answers to more. */
function quotaWords(start: Start, words: Pick<Words, "t" | "code">): string {
  const most = `${gpus(start.onNodes)}${start.unit && ` ${start.unit}`}`;
  return words.t("mine.quotaBinds", { most, leaf: start.leaf, why: clauseWords(start.clauses, words) ?? start.waiting });
}
