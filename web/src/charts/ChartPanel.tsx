// One chart of a board: lines for the top eight, a heat map for all, a table for those who read, CSV, and the query behind it.
import { Popover } from "antd";
import { lazy, Suspense, useMemo, useState } from "react";
import { useChart } from "../api/queries";
import type { ChartAnswer } from "../api/types";
import { count, exactTime } from "../format/format";
import { useWords, type Words } from "../i18n/locale";
import { isMessageKey } from "../i18n/translate";
import { useLook } from "../look/theme";
import { Icon } from "../parts/Icon";
import { Panel } from "../parts/Panel";
import { Answered, Empty, isOfServer } from "../parts/States";
import { useSeen } from "../parts/useSeen";
import { saveText } from "../parts/save";
import { DataTable } from "../table/DataTable";
import { heatWord, TOP_ALL } from "./heat";
import { HeatMap } from "./HeatMap";
import { shortLabel } from "./labels";
import { useChartPage } from "./page";
import { chartCsv, type LineStyle, lineStyles, ownStep, seriesNames } from "./series";
import { Swatch } from "./Swatch";
import { unitStyle } from "./units";

const LineChart = lazy(() => import("./LineChart"));

interface Props {
  slug: string;
  title: string;
  query: string;
  filters?: URLSearchParams;
  className?: string;
  height?: number;
}

type View = "lines" | "heat" | "table";
/** Why there is less of it than was chosen. */
const SHORT: readonly string[] = ["history-syncing", "history-off"];
const TOP = 8;
const LABELLED_MAX = 5;

export function ChartPanel({ slug, title, query, filters, className, height = 188 }: Props) {
  const { t, code } = useWords();
  const { range } = useChartPage();
  const [view, setView] = useState<View>("lines");
  const [ref, seen] = useSeen();
  const params = useMemo(() => {
    const p = new URLSearchParams(filters);
    if (view !== "lines") p.set("top", String(TOP_ALL));
    return p;
  }, [filters, view]);
  const asked = useChart(query, params, range, seen);
  const answer = asked.data;
  const short = answer?.warnings.find((warning) => SHORT.includes(warning.code));
  const names = useMemo(() => (answer ? seriesNames(answer.series).map((name, i) => (answer.series[i]?.labels["line"] ? lineWord(name, t) : name) || title) : []), [answer, t, title]);
  return (
    <Panel
      slug={slug}
      title={title}
      note={answer && asked.error && !isOfServer(asked.error) ? <Old onRetry={() => void asked.refetch()} /> : short && code("warning", short.code, { ...short.values }, short.message)}
      className={`chart-panel ${className ?? ""}`}
      tools={<ChartTools query={query} answer={answer} names={names} view={view} setView={setView} title={title} />}
    >
      <div ref={ref} style={{ minHeight: height }}>
        {seen || answer ? (
          <Answered asked={asked} bones={<ChartBones height={height} />}>
            {(data) => <ChartBody data={data} names={names} view={view} title={title} height={height} />}
          </Answered>
        ) : (
          <ChartBones height={height} /> // not requested yet, so no answer is late
        )}
      </div>
    </Panel>
  );
}

/** The last reading failed; what is drawn is from before it. */
function Old({ onRetry }: { onRetry: () => void }) {
  const { t } = useWords();
  return (
    <span data-testid="chart-old">
      {t("state.notRefreshed")}{" "}
      <button type="button" className="link" onClick={onRetry}>
        {t("action.retry")}
      </button>
    </span>
  );
}

/** The cluster's own lines are words of the server; entities are names and stay. */
function lineWord(name: string, t: Words["t"]): string {
  const key = `line.${name}`;
  return isMessageKey(key) ? t(key) : name;
}

function ChartBones({ height }: { height: number }) {
  return <div className="bone" style={{ height: height - 40, marginTop: 16 }} aria-hidden="true" />;
}

function ChartBody({ data, names, view, title, height }: { data: ChartAnswer; names: readonly string[]; view: View; title: string; height: number }) {
  const { t } = useWords();
  const { tokens } = useLook();
  const page = useChartPage();
  const unit = useMemo(() => unitStyle(data.unit, t), [data.unit, t]);
  const styles = useMemo(() => lineStyles(data.series, names, page.styles, tokens), [data.series, names, page.styles, tokens]);
  const step = useMemo(() => ownStep(data.series, data.step), [data]);
  const label = t("chart.label", { title, n: data.series.length, unit: unit.axis });
  if (data.series.length === 0) {
    const isKept = data.warnings.every((warning) => warning.code !== "history-none");
    return isKept ? <Empty why={t("chart.empty")}>{t("chart.emptyNext")}</Empty> : <Empty why={t("chart.notKept")}>{t("chart.notKeptNext")}</Empty>;
  }
  if (view === "table") return <ChartTable data={data} names={names} title={title} />;
  if (view === "heat") {
    return (
      <>
        <HeatMap names={names} series={data.series} unit={unit} stepSeconds={step} label={label} />
        <Left data={data} />
      </>
    );
  }
  return (
    <Suspense fallback={<ChartBones height={height} />}>
      <LineChart names={names} styles={styles} series={data.series} unit={unit} stepSeconds={step} label={label} height={height} />
      {data.series.length > LABELLED_MAX && <ChartLegend names={names} styles={styles} data={data} />}
    </Suspense>
  );
}

function ChartLegend({ names, styles, data }: { names: readonly string[]; styles: readonly LineStyle[]; data: ChartAnswer }) {
  return (
    <div className="chart-legend">
      {names.map((name, i) => (
        <span key={name} className="clip" title={name}>
          <Swatch style={styles[i]} />
          {shortLabel(name)}
        </span>
      ))}
      <Left data={data} />
    </div>
  );
}

/** That there are more series than are shown. */
function Left({ data }: { data: ChartAnswer }) {
  const { t } = useWords();
  if (data.total <= data.shown) return null;
  return <span className="num dim">{t("chart.top", { shown: count(data.shown), total: count(data.total) })}</span>;
}

function ChartTable({ data, names, title }: { data: ChartAnswer; names: readonly string[]; title: string }) {
  const { t } = useWords();
  const unit = unitStyle(data.unit, t);
  const times = useMemo(() => [...new Set(data.series.flatMap((s) => s.points.map((p) => p[0])))].sort((a, b) => b - a), [data]);
  const byTime = useMemo(() => data.series.map((s) => new Map(s.points)), [data]);
  const columns = [
    { key: "time", head: t("col.time"), width: 160, cell: (ms: number) => exactTime(ms) },
    ...names.map((name, i) => ({ key: name, head: name, width: 130, number: true, cell: (ms: number) => unit.format(byTime[i]?.get(ms) ?? null) })),
  ];
  return <DataTable name={`chart-${title}`} caption={title} columns={columns} rows={times} rowKey={String} maxRows={6} density="compact" />;
}

interface ToolProps {
  query: string;
  answer: ChartAnswer | undefined;
  names: readonly string[];
  view: View;
  setView: (view: View) => void;
  title: string;
}

function ChartTools({ query, answer, names, view, setView, title }: ToolProps) {
  const { t } = useWords();
  const [open, setOpen] = useState(false);
  const choose = (next: View) => () => {
    setView(next);
    setOpen(false);
  };
  const save = () => {
    if (answer) saveText(`${query}.csv`, chartCsv(names, answer.series, answer.unit), "text/csv");
  };
  const list = (
    <div className="menu-list">
      {view !== "lines" && (
        <button type="button" onClick={choose("lines")}>
          {t("chart.lines")}
        </button>
      )}
      {view !== "heat" && (answer?.total ?? 0) > TOP && (
        <button type="button" onClick={choose("heat")}>
          {heatWord(answer?.total ?? 0, t)}
        </button>
      )}
      {view !== "table" && (
        <button type="button" onClick={choose("table")}>
          {t("chart.table")}
        </button>
      )}
      <button type="button" onClick={save} disabled={!answer}>
        {t("chart.csv")}
      </button>
      <hr />
      <h3>{t("chart.query")}</h3>
      <pre>
        {query}
        {answer?.query ? `\n${answer.query}` : ""}
        {answer?.source ? `\n${t("chart.source", { source: answer.source, step: answer.step })}` : ""}
      </pre>
    </div>
  );
  return (
    <Popover trigger="click" placement="bottomRight" content={list} arrow={false} open={open} onOpenChange={setOpen}>
      <button type="button" className="tool" aria-label={t("chart.more", { title })} aria-haspopup="true">
        <Icon name="more" />
      </button>
    </Popover>
  );
}
