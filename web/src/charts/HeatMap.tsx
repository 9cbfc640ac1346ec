// Many series at once: one line per entity, time to the right, the teal scale for the value. Canvas; the value under the pointer is shown as text.
import { type PointerEvent, useLayoutEffect, useMemo, useRef, useState } from "react";
import type { ChartSeries } from "../api/types";
import { timeOfDay } from "../format/format";
import { onScale } from "../gpumap/colour";
import { ramp } from "../look/scale";
import { useLook } from "../look/theme";
import { useChartPage } from "./page";
import { valueAt } from "./series";
import type { UnitStyle } from "./units";

interface Props {
  names: readonly string[];
  series: readonly ChartSeries[];
  unit: UnitStyle;
  stepSeconds: number;
  label: string;
}

const ROW = 14;
const NAMES_WIDTH = 150;
const AXIS = 18;

export function HeatMap({ names, series, unit, stepSeconds, label }: Props) {
  const { tokens } = useLook();
  const { range } = useChartPage();
  const canvas = useRef<HTMLCanvasElement>(null);
  const box = useRef<HTMLDivElement>(null);
  const [shownValue, setShownValue] = useState("");
  const [width, setWidth] = useState(0);
  const scale = useMemo(() => ramp(tokens.scaleTeal), [tokens]);
  const most = useMemo(() => unit.reach ?? Math.max(1, ...series.flatMap((s) => s.points.map((p) => p[1] ?? 0))), [series, unit]);
  const { from } = range;
  const span = range.to - from;
  const columns = Math.max(1, Math.min(240, Math.round(span / 1000 / stepSeconds)));

  useLayoutEffect(() => {
    if (!box.current) return;
    const element = box.current;
    const watcher = new ResizeObserver(() => setWidth(element.clientWidth));
    watcher.observe(element);
    return () => watcher.disconnect();
  }, []);
  useLayoutEffect(() => {
    const element = canvas.current;
    const ratio = devicePixelRatio || 1;
    if (!element || width === 0) return;
    element.width = width * ratio;
    element.height = (series.length * ROW + AXIS) * ratio;
    const pen = element.getContext("2d");
    if (!pen) return;
    pen.scale(ratio, ratio);
    pen.font = "11px system-ui, sans-serif";
    pen.textBaseline = "middle";
    const cell = (width - NAMES_WIDTH) / columns;
    series.forEach((s, row) => {
      pen.fillStyle = tokens.text2;
      pen.fillText(tail(names[row] ?? ""), 0, row * ROW + ROW / 2, NAMES_WIDTH - 8);
      for (let i = 0; i < columns; i += 1) {
        const ms = from + ((i + 0.5) * span) / columns;
        const value = valueAt(s.points, ms, stepSeconds * 1000);
        if (value === null) continue;
        pen.fillStyle = value === 0 ? tokens.idleFill : onScale(scale, value / most);
        pen.fillRect(NAMES_WIDTH + i * cell, row * ROW + 1, Math.ceil(cell), ROW - 2);
      }
    });
    pen.fillStyle = tokens.text3;
    for (const share of [0, 0.5, 1]) {
      pen.textAlign = share === 0 ? "left" : share === 1 ? "right" : "center";
      pen.fillText(timeOfDay(from + share * span).slice(0, 5), NAMES_WIDTH + share * (width - NAMES_WIDTH), series.length * ROW + 10);
    }
  }, [width, series, names, tokens, scale, most, columns, from, span, stepSeconds]);

  const onMove = (event: PointerEvent) => {
    const rect = event.currentTarget.getBoundingClientRect();
    const row = Math.floor((event.clientY - rect.top) / ROW);
    const share = (event.clientX - rect.left - NAMES_WIDTH) / (width - NAMES_WIDTH);
    const one = series[row];
    if (!one || share < 0 || share > 1) return setShownValue("");
    const ms = from + share * span;
    setShownValue(`${names[row]} · ${timeOfDay(ms)} · ${unit.format(valueAt(one.points, ms, stepSeconds * 1000))}`);
  };
  return (
    <div ref={box}>
      <canvas ref={canvas} className="heat" style={{ height: series.length * ROW + AXIS }} role="img" aria-label={label} onPointerMove={onMove} onPointerLeave={() => setShownValue("")} />
      <div className="heat-value num">{shownValue || "\u00a0"}</div>
    </div>
  );
}

const NAME_LETTERS = 24;
const tail = (name: string): string => (name.length > NAME_LETTERS ? `…${name.slice(1 - NAME_LETTERS)}` : name);
