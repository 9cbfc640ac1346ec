// Why something waits: our own words first, what the source said below them, folded.
import type { Sentence, Waiting } from "../api/types";
import { shown } from "../format/shown";
import { useWords, type Words } from "../i18n/locale";
import { sentenceWords } from "../i18n/sentences";

type Spoken = Pick<Words, "t" | "code">;

/** What quota said, in the reader's language; null where it is another's word. */
export const toldWords = (told: readonly Sentence[], words: Spoken): string | null => (told.length > 0 ? told.map((each) => sentenceWords(each, words)).join(words.t("told.between")) : null);

/** In our own words, where we have some: our count, or what quota says. */
export const whyWords = (waiting: Waiting, words: Spoken): string | null => (waiting.sentence ? sentenceWords(waiting.sentence, words) : toldWords(waiting.told, words));

/** What the source said beside that, if anything: of a wait that we tell ourselves there is no more. */
export const saidBeside = (waiting: Waiting): readonly string[] => {
  const isOurs = waiting.sentence !== null ? waiting.sentence.text === waiting.message : waiting.told.length > 0;
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
