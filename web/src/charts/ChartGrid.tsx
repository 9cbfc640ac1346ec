// The charts below a board: a head with the range of time, and the panels, three in a row.
import { useMe } from "../api/queries";
import { useWords } from "../i18n/locale";
import type { MessageKey } from "../i18n/translate";
import { ChartPanel } from "./ChartPanel";
import { TimeWindow } from "./TimeWindow";
import { UNKEPT } from "./unkept";

interface BoardChart {
  readonly slug: string;
  readonly title: MessageKey;
  readonly query: string;
  readonly filters: URLSearchParams;
}

export type NamedCharts = readonly (readonly [slug: string, title: MessageKey, query: string])[];

/** Charts under the same filters. */
export const chartsOf = (named: NamedCharts, filters: URLSearchParams): BoardChart[] => named.map(([slug, title, query]) => ({ slug, title, query, filters }));

export function ChartGrid({ charts }: { charts: readonly BoardChart[] }) {
  const { t } = useWords();
  const isKept = useMe().data?.features.prometheus !== false;
  const shown = charts.filter(({ query }) => isKept || !UNKEPT.has(query));
  const unkept = charts.filter((chart) => !shown.includes(chart));
  return (
    <>
      <div className="row-head">
        <h2>{t("chart.charts")}</h2>
        <TimeWindow />
      </div>
      <div className="grid">
        {shown.map(({ slug, title, query, filters }) => (
          <ChartPanel key={slug} className="c4" slug={slug} title={t(title)} query={query} filters={filters} />
        ))}
      </div>
      {unkept.length > 0 && (
        <p className="dim" data-testid="charts-unkept">
          {t("chart.unkept", { charts: unkept.map(({ title }) => t(title)).join(" · ") })} <code>--prometheus URL</code>
        </p>
      )}
    </>
  );
}
