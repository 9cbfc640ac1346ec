// The rows of a table that the page has whole, as a file; lists that come in pages ask the server for theirs.
import { rowsCsv } from "../format/csv";
import { useWords } from "../i18n/locale";
import { Icon } from "../parts/Icon";
import { saveText } from "../parts/save";

interface Props {
  /** What the file is called. */
  name: string;
  rows: readonly object[];
}

export function RowsCsv({ name, rows }: Props) {
  const { t } = useWords();
  return (
    <button type="button" className="tool" aria-label={t("chart.csv")} title={t("chart.csv")} onClick={() => saveText(`${name}.csv`, rowsCsv(rows), "text/csv")} data-testid={`csv-${name}`}>
      <Icon name="download" />
    </button>
  );
}

/** The head of a section whose table can be taken along. */
export function CsvHead({ title, name, rows }: Props & { title: string }) {
  return (
    <div className="csv-head">
      <h2>{title}</h2>
      <RowsCsv name={name} rows={rows} />
    </div>
  );
}
