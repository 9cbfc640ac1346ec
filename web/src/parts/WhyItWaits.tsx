// The reason of a wait: Fairlead's sentence first, the source's message below it, folded.
import type { Sentence, Waiting } from "../api/types";
import { shown } from "../format/shown";
import { useWords, type Words } from "../i18n/locale";
import { sentenceWords } from "../i18n/sentences";

type Spoken = Pick<Words, "t" | "code">;

/** The clauses of a message of quota, in the reader's language; null for other messages. */
export const clauseWords = (clauses: readonly Sentence[], words: Spoken): string | null => (clauses.length > 0 ? clauses.map((each) => sentenceWords(each, words)).join(words.t("clause.between")) : null);

/** The reason in the reader's language, if there is one: Fairlead's sentence, or the clauses of quota. */
export const whyWords = (waiting: Waiting, words: Spoken): string | null => (waiting.sentence ? sentenceWords(waiting.sentence, words) : clauseWords(waiting.clauses, words));

/** The messages of the source that the reason does not contain; none if Fairlead found the reason itself. */
export const saidBeside = (waiting: Waiting): readonly string[] => {
  const isOurs = waiting.sentence !== null ? waiting.sentence.text === waiting.message : waiting.clauses.length > 0;
  return [isOurs ? "" : waiting.message || waiting.reason, waiting.room === waiting.sentence?.text ? "" : waiting.room].filter((text) => text !== "");
};

export function WhyItWaits({ waiting }: { waiting: Waiting }) {
  const words = useWords();
  const { t, code } = words;
  const ours = whyWords(waiting, words);
  const said = saidBeside(waiting).map((text) => (
    <p key={text} lang="en" data-testid={text === waiting.room ? "why-no-room" : undefined}>
      {shown(text)}
    </p>
  ));
  if (!ours) return said;
  return (
    <>
      <p data-testid="why-sentence">{ours}</p>
      {said.length > 0 && (
        <details>
          <summary className="dim">{t("job.said", { reason: code("reason", waiting.reason, {}, waiting.reason) })}</summary>
          {said}
        </details>
      )}
    </>
  );
}
