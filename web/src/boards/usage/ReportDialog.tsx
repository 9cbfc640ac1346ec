// The report of a month as a file, with the prices as they were known at a time.
import { useId, useState } from "react";
import { apiAddress } from "../../api/fetch";
import { useNow } from "../../app/clock";
import { useWords } from "../../i18n/locale";
import { Choices } from "../../parts/Choices";
import { Field } from "../../parts/FormDialog";
import { Icon } from "../../parts/Icon";
import { useDialog } from "../../parts/useDialog";
import { monthsKept } from "./period";

const FORMATS = ["markdown", "csv", "json"] as const;
type Format = (typeof FORMATS)[number];
const WORDS: Readonly<Record<Format, string>> = { markdown: "Markdown", csv: "CSV", json: "JSON" };
const ENDINGS: Readonly<Record<Format, string>> = { markdown: "md", csv: "csv", json: "json" };
const HOUR_MS = 3_600_000;

export function ReportDialog({ month: first, onClose }: { month: string; onClose: () => void }) {
  const { t } = useWords();
  const id = useId();
  const dialog = useDialog(true);
  const now = useNow(HOUR_MS);
  const [month, setMonth] = useState(first);
  const [format, setFormat] = useState<Format>("markdown");
  const [asOf, setAsOf] = useState("");
  const params = new URLSearchParams({ format });
  if (asOf !== "") params.set("asOf", new Date(asOf).toISOString());
  return (
    <dialog className="sheet form-sheet" ref={dialog} onClose={onClose} aria-labelledby={id} data-testid="report-form">
      <header>
        <h2 id={id}>{t("report.title")}</h2>
        <button type="button" className="tool" onClick={onClose} aria-label={t("action.close")}>
          <Icon name="close" />
        </button>
      </header>
      <div className="write-dialog">
        <p className="dim">{t("report.why")}</p>
        <Field label={t("report.month")}>
          <select value={month} onChange={(event) => setMonth(event.target.value)} data-testid="report-month">
            {[...new Set([...monthsKept(now), month])].map((each) => (
              <option key={each}>{each}</option>
            ))}
          </select>
        </Field>
        <Field label={t("report.format")} isOne={false}>
          <Choices name="report-format" label={t("report.format")} value={format} choices={FORMATS.map((value) => ({ value, word: WORDS[value] }))} onChoose={setFormat} />
        </Field>
        <Field label={t("report.asOf")} hint={t("report.asOfHint")}>
          <input type="datetime-local" className="period-field" value={asOf} onChange={(event) => setAsOf(event.target.value)} data-testid="report-asOf" />
        </Field>
        <div className="form-acts">
          <a className="toggle as-link" href={apiAddress(`/reports/${month}`, params)} download={`usage-${month}.${ENDINGS[format]}`} data-testid="action-download">
            {t("report.download")}
          </a>
        </div>
      </div>
    </dialog>
  );
}
