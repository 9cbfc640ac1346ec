// Draws lines with ECharts: thin, no fill, gaps as gaps, labels at the ends for up to five. Loaded lazily; nothing else imports ECharts.
import { LineChart } from "echarts/charts";
import { GridComponent } from "echarts/components";
import { init, use, type EChartsType } from "echarts/core";
import { LabelLayout } from "echarts/features";
import { CanvasRenderer } from "echarts/renderers";
import type { Tokens } from "../look/tokens";
import { endLabels, labelPx, type Measure } from "./labels";
import type { LineStyle } from "./series";

use([LineChart, GridComponent, LabelLayout, CanvasRenderer]);

export interface Line {
  readonly name: string;
  readonly style: LineStyle;
  readonly points: readonly (readonly [number, number | null])[];
}

export interface Drawing {
  readonly lines: readonly Line[];
  readonly from: number;
  readonly to: number;
  readonly axis: string;
  readonly reach: number | null;
  /** Counts: no ticks between whole numbers. */
  readonly whole: boolean;
  readonly labelled: boolean;
  /** Right of the plot, in px: the value of `roomOf`, or more. */
  readonly room: number;
  readonly tokens: Tokens;
}

export function openChart(element: HTMLElement): EChartsType {
  return init(element, null, { renderer: "canvas" });
}

/** Between the end of a line and its label, and after it. */
const LABEL_MARGIN = 16;
const LABEL_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'Noto Sans CJK SC', sans-serif";

const pen = document.createElement("canvas").getContext("2d");

/** As the chart will draw it. */
const drawnPx: Measure = (text) => {
  if (!pen) return labelPx(text);
  pen.font = `11px ${LABEL_FONT}`;
  return pen.measureText(text).width;
};

/** The label of a dashed line is dashed, too. */
function labelsOf(lines: readonly Line[]): (string | null)[] {
  return endLabels(lines.map((line) => line.name), lines.map((line) => line.points), drawnPx).map((label, i) => (label !== null && lines[i]?.style.dashed ? `╌ ${label}` : label));
}

/** What labels need at the right of the plot, in px. */
export function roomOf(lines: readonly Line[], labelled: boolean): number {
  const longest = Math.max(0, ...labelsOf(lines).map((label) => drawnPx(label ?? "")));
  return labelled ? Math.ceil(longest) + LABEL_MARGIN : 10;
}

export function drawLines(chart: EChartsType, drawing: Drawing): void {
  const { tokens: t, labelled } = drawing;
  const labels = labelsOf(drawing.lines);
  const { room } = drawing;
  chart.setOption(
    {
      animation: false,
      grid: { left: 44, right: room, top: 22, bottom: 22 },
      xAxis: {
        type: "time",
        min: drawing.from,
        max: drawing.to,
        axisLine: { lineStyle: { color: t.lineStrong } },
        axisTick: { show: false },
        axisLabel: { color: t.text3, fontSize: 11, hideOverlap: true, formatter: { day: "{MM}-{dd}", hour: "{HH}:{mm}", minute: "{HH}:{mm}", second: "{HH}:{mm}:{ss}" } },
        splitLine: { show: false },
        splitNumber: 4,
      },
      yAxis: {
        type: "value",
        name: drawing.axis,
        nameLocation: "end",
        nameGap: 8,
        nameTextStyle: { color: t.text3, fontSize: 11, align: "right", padding: [0, 4, 0, 0] },
        min: 0,
        max: drawing.reach ?? undefined,
        minInterval: drawing.whole ? 1 : undefined,
        interval: drawing.reach ? drawing.reach / 4 : undefined,
        splitNumber: 3,
        axisLabel: { color: t.text3, fontSize: 11 },
        splitLine: { lineStyle: { color: t.line } },
      },
      series: drawing.lines.map((line, i) => ({
        type: "line",
        name: line.name,
        data: labelled && labels[i] === null ? [] : line.points,
        showSymbol: lonely(line.points),
        symbolSize: 3,
        connectNulls: false,
        silent: true,
        lineStyle: { width: 1.5, color: line.style.colour, type: line.style.dashed ? "dashed" : "solid" },
        itemStyle: { color: line.style.colour },
        endLabel: { show: labelled && labels[i] !== null, formatter: () => labels[i] ?? "", color: line.style.colour, fontSize: 11, fontFamily: LABEL_FONT, lineHeight: 13, distance: 6, width: room - 8, overflow: "truncate" },
        labelLayout: { moveOverlap: "shiftY" },
      })),
    },
    { notMerge: true },
  );
}

/** Samples that stand alone between gaps would be invisible as a line. */
function lonely(points: Line["points"]): boolean {
  return points.every((p, i) => p[1] === null || ((points[i - 1]?.[1] ?? null) === null && (points[i + 1]?.[1] ?? null) === null));
}
