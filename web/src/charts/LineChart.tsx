// A line chart with our own pointer: shared crosshair, a tooltip sorted by value, drag to choose a time range, double click to go back.
import type { EChartsType } from "echarts/core";
import { type PointerEvent, useCallback, useEffect, useId, useLayoutEffect, useMemo, useRef, useState, useSyncExternalStore } from "react";
import type { ChartSeries } from "../api/types";
import { exactTime } from "../format/format";
import { useLook } from "../look/theme";
import { drawLines, type Line, openChart, roomOf } from "./lines";
import { useChartPage } from "./page";
import { RANGE_MIN_MS } from "./range";
import { type LineStyle, valueAt } from "./series";
import { Swatch } from "./Swatch";
import type { UnitStyle } from "./units";

interface Props {
  names: readonly string[];
  styles: readonly LineStyle[];
  series: readonly ChartSeries[];
  unit: UnitStyle;
  stepSeconds: number;
  label: string;
  height: number;
}

const LABELLED_MAX = 5;
const PLAIN: LineStyle = { colour: "", dashed: false };

export default function LineChart({ names, styles, series, unit, stepSeconds, label, height }: Props) {
  const { tokens } = useLook();
  const page = useChartPage();
  const id = useId();
  const box = useRef<HTMLDivElement>(null);
  const [chart, setChart] = useState<EChartsType | null>(null);
  const [left, setLeft] = useState(0);
  const [pointed, setPointed] = useState<{ ms: number; own: boolean } | null>(null);
  const [dragged, setDragged] = useState<readonly [number, number] | null>(null);
  const self = useMemo(() => ({ id }), [id]);

  const lines = useMemo<Line[]>(
    () => series.map((s, i) => ({ name: names[i] ?? "", style: styles[i] ?? PLAIN, points: s.points.map(([ms, v]) => [ms, v === null ? null : v * unit.scale] as const) })),
    [series, names, styles, unit],
  );
  const { from, to } = page.range;
  const labelled = lines.length > 1 && lines.length <= LABELLED_MAX;

  useLayoutEffect(() => {
    if (!box.current) return;
    const opened = openChart(box.current);
    setChart(opened);
    const watcher = new ResizeObserver(() => {
      opened.resize();
      setLeft(Math.round((box.current?.getBoundingClientRect().left ?? 0) + scrollX));
    });
    watcher.observe(box.current);
    return () => {
      watcher.disconnect();
      opened.dispose();
    };
  }, []);
  const own = useMemo(() => roomOf(lines, labelled), [lines, labelled]);
  const { rooms } = page;
  useLayoutEffect(() => rooms.need(self, left, own), [rooms, self, left, own]);
  useLayoutEffect(() => () => rooms.leave(self), [rooms, self]);
  const room = Math.max(own, useSyncExternalStore(useCallback((heard) => rooms.onChange(heard), [rooms]), () => rooms.of(self)));
  useLayoutEffect(() => {
    if (chart) drawLines(chart, { lines, from, to, axis: unit.axis, reach: unit.reach, whole: unit.whole, labelled, room, tokens });
  }, [chart, lines, labelled, from, to, unit, room, tokens]);
  useEffect(() => page.onPoint((ms, from) => setPointed(ms === null ? null : { ms, own: from === self })), [page, self]);

  const timeAt = (event: PointerEvent): number => {
    const left = box.current?.getBoundingClientRect().left ?? 0;
    return Number(chart?.convertFromPixel({ xAxisIndex: 0 }, event.clientX - left));
  };
  const pixelOf = (ms: number): number => Number(chart?.convertToPixel({ xAxisIndex: 0 }, ms));
  const inside = (ms: number) => ms >= from && ms <= to;
  const onMove = (event: PointerEvent) => {
    const ms = timeAt(event);
    page.point(inside(ms) ? ms : null, self);
    if (dragged && Number.isFinite(ms)) setDragged([dragged[0], ms]);
  };
  const onUp = () => {
    if (dragged && Math.abs(dragged[1] - dragged[0]) >= RANGE_MIN_MS) page.select(Math.min(...dragged), Math.max(...dragged));
    setDragged(null);
  };
  return (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-element-interactions -- pointing adds to the picture; the table view has the numbers
    <div
      className="chart"
      style={{ height }}
      role="img"
      aria-label={label}
      onPointerMove={onMove}
      onPointerLeave={() => page.point(null, self)}
      onPointerDown={(event) => {
        event.currentTarget.setPointerCapture(event.pointerId);
        const ms = timeAt(event);
        if (inside(ms)) setDragged([ms, ms]);
      }}
      onPointerUp={onUp}
      onDoubleClick={page.reset}
    >
      <div className="chart-canvas" ref={box} />
      {pointed && inside(pointed.ms) && <div className="crosshair" style={{ left: pixelOf(pointed.ms) }} />}
      {dragged && <div className="drag" style={{ left: pixelOf(Math.min(...dragged)), width: Math.abs(pixelOf(dragged[1]) - pixelOf(dragged[0])) }} />}
      {pointed?.own && inside(pointed.ms) && !dragged && <Tip ms={pointed.ms} left={pixelOf(pointed.ms)} lines={lines} series={series} unit={unit} stepSeconds={stepSeconds} wide={chart?.getWidth() ?? 0} />}
    </div>
  );
}

interface TipProps {
  ms: number;
  left: number;
  lines: readonly Line[];
  series: readonly ChartSeries[];
  unit: UnitStyle;
  stepSeconds: number;
  wide: number;
}

function Tip({ ms, left, lines, series, unit, stepSeconds, wide }: TipProps) {
  const values = lines
    .map((line, i) => ({ line, value: valueAt(series[i]?.points ?? [], ms, stepSeconds * 1000) }))
    .sort((a, b) => (b.value ?? Number.NEGATIVE_INFINITY) - (a.value ?? Number.NEGATIVE_INFINITY));
  const onLeft = left > wide / 2;
  return (
    <div className="tip" style={onLeft ? { right: wide - left + 12 } : { left: left + 12 }}>
      <div className="dim num">{exactTime(ms)}</div>
      {values.map(({ line, value }) => (
        <div className="tip-row" key={line.name}>
          <Swatch style={line.style} />
          <span className="clip">{line.name}</span>
          <span className="num">{unit.format(value)}</span>
        </div>
      ))}
    </div>
  );
}
