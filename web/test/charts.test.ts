import { describe, expect, it } from "vitest";
import { heatWord } from "../src/charts/heat";
import { endLabels, LABEL_MAX_PX, labelPx, shortLabel } from "../src/charts/labels";
import { ColumnRooms } from "../src/charts/columns";
import { isKept, rangeOf, WINDOWS } from "../src/charts/range";
import { chartCsv, EntityStyles, lineStyles, seriesNames, valueAt } from "../src/charts/series";
import { quoted } from "../src/format/csv";
import { unitStyle } from "../src/charts/units";
import { type MessageKey, translate, type Values } from "../src/i18n/translate";
import { tokens } from "../src/look/tokens";
import { chartAsked } from "../src/api/queries";

const line = (labels: Record<string, string>, points: [number, number | null][] = []) => ({ labels, points });

const zh = (key: MessageKey) => translate("zh-CN", key);
const en = (key: MessageKey, values?: Values) => translate("en", key, values);
const styles = (page: EntityStyles, ...names: string[]) => lineStyles(names.map((node) => line({ node })), names, page, tokens.light);
const some = (from: number, n: number) => Array.from({ length: n }, (_, i) => `node-${from + i}`);

it("a chart is asked again every 45 s, and its window is one question however far it has moved", () => {
  const [asked, later] = [0, 15_000].map((from) => chartAsked("gpu-power", new URLSearchParams("GPU=0"), { from, to: from + 1_800_000, window: "30m" }));
  expect(asked?.refetchInterval).toBe(45_000);
  expect(asked?.queryKey).toEqual(later?.queryKey);
});

describe("series", () => {
  it("an entity has one name in every chart, whatever else is shown", () => {
    const one = { node: "gpu-1", gpu: "3", uuid: "GPU-abc" };
    expect(seriesNames([line(one)])).toEqual(["gpu-1 · 3"]);
    expect(seriesNames([line(one), line({ node: "gpu-2", gpu: "3", uuid: "GPU-def" })])[0]).toBe("gpu-1 · 3");
  });
  it("two entities never share a name", () => {
    const names = seriesNames([line({ namespace: "a", instance: "w-0" }), line({ namespace: "b", instance: "w-0" }), line({ namespace: "b", instance: "w-1" })]);
    expect(names).toEqual(["a · w-0", "b · w-0", "w-1"]);
  });
  it("an entity keeps its style from chart to chart", () => {
    const page = new EntityStyles();
    const [a, b] = styles(page, "a", "b");
    expect(styles(page, "b", "a", "c").slice(0, 2)).toEqual([b, a]);
  });
  it("dashes mean a hue that the chart has already: no chart of eight has any, whatever else is on the page", () => {
    const page = new EntityStyles();
    const all = [...styles(page, ...some(0, 8)), ...styles(page, ...some(8, 8))];
    expect(all.filter((s) => s.dashed)).toEqual([]);
    expect(new Set(styles(page, ...some(0, 16)).map((s) => `${s.colour} ${s.dashed}`)).size).toBe(16);
  });
  it("on a clash an entity keeps its hue and changes its stroke", () => {
    const page = new EntityStyles();
    const [first] = styles(page, ...some(0, 16));
    styles(page, ...some(16, 1));
    const [one, other] = styles(page, "node-0", "node-16");
    expect(one).toEqual(first);
    expect(other).toEqual({ colour: first?.colour, dashed: true });
  });
  it("the lines of one chart are told apart, however many entities the page has", () => {
    const page = new EntityStyles();
    for (const from of [0, 8, 16]) styles(page, ...some(from, 8));
    const mixed = styles(page, "node-0", "node-8", "node-16", "node-1", "node-9", "node-17", "node-2", "node-10");
    expect(new Set(mixed.map((s) => `${s.colour} ${s.dashed}`)).size).toBe(8);
  });
  it("lines with a meaning have its colour", () => {
    expect(lineStyles([line({ line: "failed" })], ["failed"], new EntityStyles(), tokens.light)).toEqual([{ colour: tokens.light.red, dashed: false }]);
  });
  it("a gap is a gap", () => {
    const points: [number, number | null][] = [[0, 1], [15, null], [30, 3]];
    expect([0, 14, 29, 100].map((ms) => valueAt(points, ms, 15))).toEqual([1, null, 3, null]);
  });
  it("CSV keeps times that only one series has, and runs no formula", () => {
    const csv = chartCsv(["=cmd()", 'a "b"'], [line({}, [[0, 1]]), line({}, [[15000, null], [0, 2]])], "percent");
    expect(csv).toBe('\ufefftime,\'=cmd() (percent),"a ""b"" (percent)"\r\n1970-01-01T00:00:00.000Z,1,2\r\n1970-01-01T00:00:15.000Z,,\r\n');
  });
  it("a cell of CSV is no formula", () => {
    expect(["=1", "\t=1", "\n=1", "＝1", "＠a", "a=1"].map(quoted)).toEqual(["'=1", "'\t=1", "\"'\n=1\"", "'＝1", "'＠a", "a=1"]);
  });
});

const narrow = (text: string) => 3 * text.length;

describe("the plots of a column", () => {
  it("end where the one with the longest labels ends, as long as it is there", () => {
    const rooms = new ColumnRooms();
    const [above, below, beside] = [{}, {}, {}];
    let told = 0;
    const stop = rooms.onChange(() => (told += 1));
    rooms.need(above, 224, 10);
    rooms.need(below, 224, 90);
    rooms.need(below, 224, 90);
    rooms.need(beside, 640, 40);
    expect([above, below, beside].map((chart) => rooms.of(chart))).toEqual([90, 90, 40]);
    rooms.leave(below);
    expect([rooms.of(above), told]).toEqual([10, 4]);
    stop();
  });
});

describe("labels", () => {
  it("lines of the same values share one, and say how many lie behind it", () => {
    const four: [number, number | null][] = [[0, 4], [15, null]];
    expect(endLabels(["gpu-1", "gpu-2", "gpu-3", "gpu-4"], [four, [[0, 3], [15, null]], four, four])).toEqual(["gpu-1 +2", "gpu-2", null, null]);
  });

  it("a Chinese letter has the room of two", () => {
    expect(labelPx("已分配")).toBeGreaterThanOrEqual(33);
    expect(labelPx("total")).toBeLessThan(33);
  });
  it("what the browser measures counts, not the guess", () => {
    expect(shortLabel("team-vision/resnet50-worker-12", narrow)).toBe("team-vision/resnet50-worker-12");
    expect(narrow(shortLabel("x".repeat(90), narrow))).toBeLessThanOrEqual(LABEL_MAX_PX);
  });
  it("a long name keeps its end, and fits", () => {
    expect(shortLabel("已分配")).toBe("已分配");
    for (const name of ["team-vision/resnet50-worker-12", "训练任务实例的名称非常非常长的一个-12"]) {
      expect(shortLabel(name)).toMatch(/^….*-12$/);
      expect(labelPx(shortLabel(name))).toBeLessThanOrEqual(LABEL_MAX_PX);
    }
  });
});

describe("units", () => {
  it("are said in the language of the page", () => {
    expect(unitStyle("gpus", zh).axis).toBe("张卡");
    expect(unitStyle("cores", zh).axis).toBe("核");
    expect(unitStyle("percent", zh).axis).toBe("%");
  });
  it("counts have no ticks between whole numbers", () => {
    expect(["gpus", "jobs", "count", "percent", "mib"].map((unit) => unitStyle(unit, en).whole)).toEqual([true, true, true, false, false]);
  });
});

describe("the heat map", () => {
  it("says all only where it has all", () => {
    expect(heatWord(48, en)).toContain("all");
    expect(heatWord(40_000, en)).toBe("Show the top 50 of 40,000 as a heat map");
  });
});

const at = (query: string) => rangeOf(new URLSearchParams(query), "30m", 1_000_000_007);

describe("the time range", () => {
  it("a window ends now, aligned", () => {
    expect(at("window=1h")).toEqual({ from: 999_990_000 - 3_600_000, to: 999_990_000, window: "1h" });
    expect(at("window=weird").window).toBe("30m");
  });
  it("a dragged range is kept to the millisecond; a backward one is none", () => {
    expect(at("from=100&to=90000")).toEqual({ from: 100, to: 90000, window: null });
    expect(at("from=90000&to=100").window).toBe("30m");
  });
  it("a window that reaches back further than the history is none to choose", () => {
    expect(WINDOWS.filter((window) => isKept(window, 3600))).toEqual(["30m", "1h"]);
    expect(WINDOWS.every((window) => isKept(window, null))).toBe(true);
  });
});
