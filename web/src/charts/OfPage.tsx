// Where a table is filtered by what charts do not know, they are asked for its rows by name: those of its page.
import { count } from "../format/format";
import { useWords } from "../i18n/locale";
import type { Charted } from "./named";

/** A note if there are more. `total`: rows that match, on all pages. */
export function OfPage({ charted, total }: { charted: Charted; total: number }) {
  const { t } = useWords();
  if (charted.rows === null || charted.rows >= total) return null;
  return (
    <div className="banner quiet" data-testid="charts-of-page">
      {t("chart.ofPage", { shown: count(charted.rows), total: count(total) })}
    </div>
  );
}
