// The list "Needs attention" directly below the sentence: the worst first, each line with a count, the objects, a time, and a command.
import type { AttentionLine, AttentionObject } from "../../api/types";
import { count } from "../../format/format";
import { useWords } from "../../i18n/locale";
import { sentenceWords } from "../../i18n/sentences";
import { Ago } from "../../parts/Ago";
import { Command } from "../../parts/Copy";
import { Panel } from "../../parts/Panel";
import { Link } from "../../router/Link";
import { allOf, nameOf, pageOf } from "./attention";

export function Attention({ lines }: { lines: readonly AttentionLine[] }) {
  const words = useWords();
  const { t, code } = words;
  return (
    <Panel slug="attention" title={t("attention.title")} note={lines.length > 0 ? count(lines.length) : t("attention.none")} className="attention" flush>
      {lines.length > 0 && (
        <ul className="list">
          {lines.map((line) => (
            <li key={`${line.kind} ${line.sentence.text}`} data-level={line.level} data-testid={`attention-${line.kind}`}>
              <span className="attention-level">{code("attention.level", line.level, {}, line.level)}</span>
              <div className="grow">
                <b>{sentenceWords(line.sentence, words)}</b> <Things line={line} />
                {line.why && <div className="dim">{sentenceWords(line.why, words)}</div>}
              </div>
              <span className="when">
                <Ago at={line.since} />
              </span>
              <Command text={line.command} />
            </li>
          ))}
        </ul>
      )}
    </Panel>
  );
}

/** The objects that are longest in trouble, each a link, and a link to all. */
function Things({ line }: { line: AttentionLine }) {
  const { t } = useWords();
  return (
    <span className="things">
      {line.objects.map((object) => (
        <Thing key={`${object.namespace}/${object.name}/${object.index}`} object={object} />
      ))}
      {line.more > 0 && <Link to={allOf(line)}>{t("attention.more", { n: count(line.more) })}</Link>}
    </span>
  );
}

function Thing({ object }: { object: AttentionObject }) {
  const page = pageOf(object);
  const name = nameOf(object);
  if (!page) return <span className="mono">{name}</span>;
  return (
    <Link to={page} className="mono">
      {name}
    </Link>
  );
}
