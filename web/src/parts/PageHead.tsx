// The top of a board: its name, one sentence of state, how fresh it is.
import { type ReactNode, useEffect } from "react";
import type { Answer, Sentence } from "../api/types";
import { useClock, useNow } from "../app/clock";
import { ObjectCommand } from "../commands/EqualCommand";
import type { CommandObject } from "../commands/objects";
import { isolated } from "../format/shown";
import { exactTime, parseTime, UNKNOWN } from "../format/format";
import { useWords } from "../i18n/locale";
import { sentenceWords } from "../i18n/sentences";
import { ago } from "./Ago";
import { Copy } from "./Copy";
import { Icon } from "./Icon";
import { Name } from "./Name";

interface Props {
  title: string;
  answer: Answer | undefined;
  onRefresh: () => void;
  /** What a user can do here, beside the freshness. */
  action?: ReactNode;
  before?: ReactNode;
  /** The sentence of a page whose answer has none; boards show the server's. */
  sentence?: Sentence | undefined;
  /** The worst state, shown after it. */
  worst?: Sentence | undefined;
  /** The object of the page: its name can be copied, and commands print the same. */
  of?: CommandObject;
  /** The moment of the past that is shown, which is neither fresh nor stale. */
  at?: string | null;
}

export function PageHead({ title, answer, onRefresh, action, before, sentence = answer?.sentence, worst, of, at = null }: Props) {
  const words = useWords();
  const { t } = words;
  useEffect(() => {
    document.title = `${isolated(title)} · Fairlead`;
  }, [title]);
  return (
    <div className="page-head">
      <div className="words">
        {before}
        <div className="named">
          <h1>
            <Name text={title} />
          </h1>
          {of && <Copy text={title} label={t("copy.of", { text: title })} />}
          {of && <ObjectCommand of={of} />}
        </div>
        <p className="sentence" data-testid="sentence">
          {sentence ? [sentence, worst].flatMap((each) => (each ? [sentenceWords(each, words)] : [])).join(" ") : "\u00a0"}
        </p>
      </div>
      {action}
      {answer && at === null && <Fresh answer={answer} onRefresh={onRefresh} />}
    </div>
  );
}

/** Boards are read every 30 s at least, and the reading takes a moment: older values mean that the server is unreachable. */
const LOST_SECONDS = 36;

function Fresh({ answer, onRefresh }: { answer: Answer; onRefresh: () => void }) {
  const { t } = useWords();
  const now = useNow(1000);
  const ms = parseTime(answer.generatedAt);
  const { speed } = useClock();
  const age = ms === null ? null : Math.max(0, now - ms) / 1000;
  const stale = answer.stale || (age ?? 0) > LOST_SECONDS * Math.max(1, speed);
  return (
    <div className="fresh" data-stale={stale} data-testid="freshness">
      <time className="num" dateTime={answer.generatedAt} title={exactTime(ms)}>
        {t(stale ? "fresh.stale" : "fresh.updated", { ago: age === null ? UNKNOWN : ago(age, t) })}
      </time>
      <button type="button" className="tool" aria-label={t("action.refresh")} title={t("action.refresh")} onClick={onRefresh}>
        <Icon name="refresh" />
      </button>
    </div>
  );
}
