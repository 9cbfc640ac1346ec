// Why something waits: our own count first, what the scheduler said below it, folded.
import type { Sentence, Waiting } from "../api/types";
import { shown } from "../format/shown";
import { useWords, type Words } from "../i18n/locale";

/** In one sentence, where we can say more than the source. */
export const whyWords = (waiting: Waiting, code: Words["code"]): string | null => (waiting.sentence ? code("sentence", waiting.sentence.code, waiting.sentence.values, waiting.sentence.text) : null);

/** What quota said, in the reader's language; null where it is another's word. */
export const toldWords = (told: readonly Sentence[], { t, code }: Pick<Words, "t" | "code">): string | null =>
  told.length > 0 ? told.map((each) => code("sentence", each.code, each.values, each.text)).join(t("told.between")) : null;

export function WhyItWaits({ waiting }: { waiting: Waiting }) {
  const words = useWords();
  const { t, code } = words;
  const ours = whyWords(waiting, code);
  const told = toldWords(waiting.told, words);
  const said = <p lang={told ? undefined : "en"}>{told ?? shown(waiting.message || waiting.reason)}</p>;
  if (!ours)
    return (
      <>
        {said}
        {waiting.room && <p data-testid="why-no-room">{t("job.room", { room: waiting.room })}</p>}
      </>
    );
  return (
    <>
      <p data-testid="why-sentence">{ours}</p>
      <details>
        <summary className="dim">{t("job.said", { reason: code("reason", waiting.reason, {}, waiting.reason) })}</summary>
        {said}
      </details>
    </>
  );
}
