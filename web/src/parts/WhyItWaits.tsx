// Why something waits: our own count first, what the scheduler said below it, folded.
import type { Waiting } from "../api/types";
import { useWords, type Words } from "../i18n/locale";

/** In one sentence, where we can say more than the source. */
export const whyWords = (waiting: Waiting, code: Words["code"]): string | null => (waiting.sentence ? code("sentence", waiting.sentence.code, waiting.sentence.values, waiting.sentence.text) : null);

export function WhyItWaits({ waiting }: { waiting: Waiting }) {
  const { t, code } = useWords();
  const ours = whyWords(waiting, code);
  const said = waiting.message || waiting.reason;
  if (!ours)
    return (
      <>
        <p>{said}</p>
        {waiting.room && <p data-testid="why-no-room">{t("job.room", { room: waiting.room })}</p>}
      </>
    );
  return (
    <>
      <p data-testid="why-sentence">{ours}</p>
      <details>
        <summary className="dim">{t("job.said", { reason: waiting.reason })}</summary>
        <p lang="en">{said}</p>
      </details>
    </>
  );
}
