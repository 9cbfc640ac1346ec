// What the form would do: whether the job starts, the equal command, the objects, and what the API server would refuse.
import type { JobForm, SubmitPreview, SubmitVerdict } from "../../api/types";
import { shown } from "../../format/shown";
import { useWords } from "../../i18n/locale";
import { sentenceWords } from "../../i18n/sentences";
import { Command, Copy } from "../../parts/Copy";
import { Panel } from "../../parts/Panel";
import "../jobs/life.css";

export function Outcome({ preview, family, isLate }: { preview: SubmitPreview | undefined; family: JobForm["family"]; isLate: boolean }) {
  const { t } = useWords();
  const verdict = preview?.verdict;
  const none = family === "cron" ? t("submit.cronVerdict") : t("submit.noVerdict");
  const unknown = preview?.valid ? none : t("submit.incomplete");
  return (
    <div className="submit-outcome" data-late={isLate} aria-busy={isLate} data-testid="submit-outcome">
      <Panel slug="verdict" title={t("submit.verdict")}>
        <div aria-live="polite">{verdict ? <Verdict of={verdict} /> : <p className="dim">{unknown}</p>}</div>
        {preview?.notes.map((note) => (
          <p key={note} className="dim" lang="en">
            {shown(note)}
          </p>
        ))}
      </Panel>
      <Panel slug="command" title={t("submit.line")}>
        {preview?.line ? <Command text={preview.line} /> : <p className="dim">{t("submit.incomplete")}</p>}
      </Panel>
      <Panel slug="manifests" title={t("submit.manifests")} tools={preview?.manifests ? <Copy text={preview.manifests} label={t("yaml.copy")} /> : undefined}>
        {preview?.manifests ? (
          // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- it scrolls, and must by keyboard, too
          <pre className="manifest" tabIndex={0} aria-label={t("submit.manifests")} data-testid="submit-manifests">
            {shown(preview.manifests)}
          </pre>
        ) : (
          <p className="dim">{t("submit.incomplete")}</p>
        )}
      </Panel>
    </div>
  );
}

function Verdict({ of }: { of: SubmitVerdict }) {
  const words = useWords();
  return (
    <div className="verdict" data-state={of.state} data-testid="submit-verdict">
      <p className="verdict-word">{sentenceWords(of.sentence, words)}</p>
      {of.clauses.length > 0 ? (
        <ul>
          {of.clauses.map((clause) => (
            <li key={clause.code + clause.text}>{sentenceWords(clause, words)}</li>
          ))}
        </ul>
      ) : (
        of.message && <p lang="en">{shown(of.message)}</p>
      )}
    </div>
  );
}
