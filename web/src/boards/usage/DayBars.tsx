// GPU-hours per billing day as stacked bars: by who used them, or by whether they were used. The same numbers are a table and a file.
import { useMemo, useState } from "react";
import { useUsageDays } from "../../api/queries";
import type { UsageDays } from "../../api/types";
import { exactTime, heldHours, parseTime } from "../../format/format";
import { useWords, type Words } from "../../i18n/locale";
import { Choices } from "../../parts/Choices";
import { Icon } from "../../parts/Icon";
import { Panel } from "../../parts/Panel";
import { Answered, Bones, Empty } from "../../parts/States";
import type { Column } from "../../table/columns";
import { DataTable } from "../../table/DataTable";
import { RowsCsv } from "../../table/RowsCsv";
import { axisEnd, type Bar, barsOf, USE_PARTS } from "./bars";
import { partWord, usageName } from "./words";

const HEIGHT = 168;
const MAX_ROWS = 12;
/** Dates below the bars; on a narrow page each still has room. */
const LABELS_MAX = 8;
const YEAR_LETTERS = "2026-".length;

const USE_COLOURS: Readonly<Record<(typeof USE_PARTS)[number], string>> = { busy: "--teal", idle: "--amber-soft", unknown: "--unknown-line" };

type Stack = "row" | "use";

/** `by`: what a row is called. */
export function DayBars({ params, by }: { params: URLSearchParams; by: string }) {
  const { t } = useWords();
  const asked = useUsageDays(params);
  const [stack, setStack] = useState<Stack>("row");
  const [isTable, setTable] = useState(false);
  const drawn = useMemo(() => (asked.data ? drawingOf(asked.data, stack === "use", t) : null), [asked.data, stack, t]);
  const tools = (
    <>
      <Choices
        name="stack"
        label={t("usage.stack")}
        value={stack}
        choices={[
          { value: "row", word: by },
          { value: "use", word: t("usage.byUse") },
        ]}
        onChoose={setStack}
      />
      {drawn && <RowsCsv name="usage-days" rows={drawn.bars.map((bar) => ({ day: bar.day, ...Object.fromEntries(drawn.parts.map(({ name }, i) => [name, bar.parts[i] ?? 0])) }))} />}
      <button type="button" className="tool" aria-pressed={isTable} aria-label={t("chart.table")} title={t("chart.table")} onClick={() => setTable(!isTable)} data-testid="action-days-table">
        <Icon name="table" />
      </button>
    </>
  );
  return (
    <Panel slug="usage-days" title={t("usage.days")} note={asked.data && noteOf(asked.data, t)} tools={tools} flush={isTable}>
      <Answered asked={asked} bones={<Bones lines={5} />}>
        {() => (drawn === null || drawn.parts.length === 0 ? <Empty why={t("usage.none")} /> : isTable ? <DayTable {...drawn} /> : <Picture {...drawn} />)}
      </Answered>
    </Panel>
  );
}

/** Also since when there are records, where the period begins before. */
function noteOf({ period, recordedSince }: UsageDays, t: Words["t"]): string {
  const since = parseTime(recordedSince);
  const zone = t("usage.daysNote", { zone: period.zone });
  return since !== null && since > (parseTime(period.start) ?? since) ? `${zone} · ${t("usage.since", { at: exactTime(since) })}` : zone;
}

interface Part {
  readonly name: string;
  /** A colour of the theme. */
  readonly colour: string;
}

interface Drawing {
  readonly parts: readonly Part[];
  readonly bars: readonly Bar[];
}

function drawingOf(answer: UsageDays, isUse: boolean, t: Words["t"]): Drawing {
  const ofUse = USE_PARTS.map((part): Part => ({ name: partWord(part, t), colour: USE_COLOURS[part] }));
  const ofRows = answer.rows.map((row, i): Part => (row.isRest ? { name: t("usage.others"), colour: "--rest" } : { name: usageName(row, answer.by, t), colour: `--series-${i}` }));
  return { parts: isUse ? ofUse : ofRows, bars: barsOf(answer, isUse) };
}

/** One element, its parts as one background: there may be hundreds of parts. */
function stackOf({ parts: hours, total }: Bar, parts: readonly Part[]): string {
  const ends = hours.map((_, i) => (100 * hours.slice(0, i + 1).reduce((sum, n) => sum + n, 0)) / (total || 1));
  const stops = parts.map(({ colour }, i) => `var(${colour}) ${(ends[i - 1] ?? 0).toFixed(2)}% ${(ends[i] ?? 0).toFixed(2)}%`);
  return `linear-gradient(to top, ${stops.join(", ")})`;
}

function Picture({ parts, bars }: Drawing) {
  const { t } = useWords();
  const end = axisEnd(bars);
  const every = Math.ceil(bars.length / LABELS_MAX);
  const words = (bar: Bar) => [`${bar.day}: ${heldHours(bar.total)} ${t("usage.gpuHours")}`, ...parts.flatMap(({ name }, i) => (bar.parts[i] ? [`${name}: ${heldHours(bar.parts[i])}`] : []))].join("\n");
  const total = bars.reduce((sum, bar) => sum + bar.total, 0);
  return (
    <>
      <div className="daybars" role="img" aria-label={t("usage.daysLabel", { days: bars.length, hours: heldHours(total) })} style={{ height: HEIGHT }} data-testid="daybars">
        <span className="daybars-top num">{heldHours(end)}</span>
        {bars.map((bar) => (
          <div className="daybar" key={bar.day} title={words(bar)}>
            <i style={{ height: `${end > 0 ? (100 * bar.total) / end : 0}%`, background: stackOf(bar, parts) }} />
          </div>
        ))}
      </div>
      <div className="daybars-days num" aria-hidden="true">
        {bars.map((bar, i) => (
          <span key={bar.day}>{i % every === 0 ? bar.day.slice(YEAR_LETTERS) : ""}</span>
        ))}
      </div>
      <ul className="daybars-legend">
        {parts.map(({ name, colour }) => (
          <li key={colour}>
            <i style={{ background: `var(${colour})` }} aria-hidden="true" />
            <span className="clip">{name}</span>
          </li>
        ))}
      </ul>
    </>
  );
}

function DayTable({ parts, bars }: Drawing) {
  const { t } = useWords();
  const columns: Column<Bar>[] = [
    { key: "day", head: t("usage.day"), width: 100, fixed: true, unsortable: true, cell: (bar) => bar.day },
    { key: "total", head: t("usage.gpuHours"), width: 90, number: true, unsortable: true, cell: (bar) => heldHours(bar.total) },
    ...parts.map(({ name, colour }, i): Column<Bar> => ({ key: colour, head: name, width: 110, number: true, unsortable: true, cell: (bar) => heldHours(bar.parts[i] ?? 0) })),
  ];
  return <DataTable name="usage-days" caption={t("usage.days")} columns={columns} rows={bars} rowKey={(bar) => bar.day} maxRows={MAX_ROWS} walkable />;
}
