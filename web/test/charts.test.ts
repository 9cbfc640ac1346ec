import { describe, expect, it } from "vitest";
import { axisStart, rangeOf } from "../src/charts/range";
import { chartCsv, EntityColours, firstSample, lineColours, seriesNames, valueAt } from "../src/charts/series";
import { tokens } from "../src/look/tokens";

const line = (labels: Record<string, string>, points: [number, number | null][] = []) => ({ labels, points });

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
  it("an entity keeps its colour from chart to chart", () => {
    const colours = new EntityColours();
    const of = (...names: string[]) => lineColours(names.map((node) => line({ node })), names, colours, tokens.light);
    const [a, b] = of("a", "b");
    expect(of("b", "a", "c").slice(0, 2)).toEqual([b, a]);
  });
  it("the lines of one chart have different colours, however many entities the page has", () => {
    const colours = new EntityColours();
    for (const group of ["a", "b", "c"]) {
      const names = Array.from({ length: 8 }, (_, i) => `${group}${i}`);
      lineColours(names.map((node) => line({ node })), names, colours, tokens.light);
    }
    const mixed = ["a0", "b0", "c0", "a1", "b1", "c1", "a2", "b2"];
    expect(new Set(lineColours(mixed.map((node) => line({ node })), mixed, colours, tokens.light)).size).toBe(8);
  });
  it("lines with a meaning have its colour", () => {
    expect(lineColours([line({ line: "failed" })], ["failed"], new EntityColours(), tokens.light)).toEqual([tokens.light.red]);
  });
  it("a gap is a gap", () => {
    const points: [number, number | null][] = [[0, 1], [15, null], [30, 3]];
    expect([0, 14, 29, 100].map((ms) => valueAt(points, ms, 15))).toEqual([1, null, 3, null]);
    expect(firstSample([line({}, [[0, null], [15, 2]]), line({}, [[0, null]])])).toBe(15);
    expect(firstSample([line({}, [[0, null]])])).toBeNull();
  });
  it("CSV keeps times that only one series has, and runs no formula", () => {
    const csv = chartCsv(["=cmd()", 'a "b"'], [line({}, [[0, 1]]), line({}, [[15000, null], [0, 2]])], "percent");
    expect(csv).toBe('\ufefftime,\'=cmd() (percent),"a ""b"" (percent)"\r\n1970-01-01T00:00:00.000Z,1,2\r\n1970-01-01T00:00:15.000Z,,\r\n');
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
  it("the axis begins where samples begin, but spans five minutes; a dragged range is left alone", () => {
    const range = { from: 0, to: 3_600_000, window: "1h" } as const;
    expect(axisStart(range, 1_800_000)).toBe(1_800_000);
    expect(axisStart(range, 3_590_000)).toBe(3_300_000);
    expect(axisStart(range, null)).toBe(0);
    expect(axisStart({ ...range, window: null }, 1_800_000)).toBe(0);
  });
});
