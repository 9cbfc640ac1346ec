import { describe, expect, it } from "vitest";
import { makeWorld } from "../dev/world";
import type { GpuMapAnswer, MapGpu, MapNode } from "../src/api/types";
import { type Cell, heldByTeam, isIdle, isSplit, readMap, sizeOf } from "../src/gpumap/cells";
import { BEARS, countMarks, isLit, isMark, litCells, litTeam, type Mark } from "../src/gpumap/counts";
import { edgeOf, fillOf, paletteOf } from "../src/gpumap/colour";
import { clipped, touching } from "../src/gpumap/draw";
import { holderPage } from "../src/gpumap/holder";
import { cellAt, layOut, leap, neighbour, place, rowsOf, wheelStep, zoomSizes } from "../src/gpumap/layout";
import { besideCell, CARD_WIDTH } from "../src/gpumap/MapCard";
import { contrast, ramp } from "../src/look/scale";
import { tokens } from "../src/look/tokens";

const answer = (nodes: GpuMapAnswer["nodes"], teams = ["a", "b"]): GpuMapAnswer => ({ generatedAt: "", stale: false, version: "1", warnings: [], teams, models: ["A100", "T4"], modes: ["exclusive"], statuses: ["Ready", "NotReady"], nodes });
const node = (name: string, model: number, gpus: MapGpu[], indexes: number[] = []): MapNode => [name, model, 0, 0, gpus, indexes];
const gpu = (state = 1, util: number | null = 50, holders: MapGpu[5] = 0, idle = 0): MapGpu => [state, util, 40, 60, idle, holders];
const eight = Array.from({ length: 8 }, () => gpu());
const huge = readMap(answer(makeWorld("huge").map.nodes, [...makeWorld("huge").map.teams]));

describe("the legend", () => {
  it("lights up as many cells as it counts", () => {
    const map = readMap(answer([node("a", 0, [0, 1, 2, 3, 4, 5, 6, 7].map((state) => gpu(state, state === 1 ? 0 : null)))]));
    const counts = countMarks(map);
    for (const mark of Object.keys(counts) as Mark[]) expect(map.cells.filter(BEARS[mark]).length, mark).toBe(counts[mark]);
    const { held, free, closed, unreachable, broken, draining, holderUnknown } = counts;
    expect(held + free + closed + unreachable + broken + draining + holderUnknown).toBe(map.cells.length);
  });
  it("lights up the cells of a team", () => {
    const teams = { teams: ["a", "b"] };
    const one = readMap(answer([node("n", 0, [gpu()])])).cells[0] as Cell;
    const cells = [0, 1].map((team) => ({ ...one, slices: [[team, 1]] as const }));
    expect(cells.map(litCells(litTeam("b"), teams))).toEqual([false, true]);
    expect([cells.map(litCells(null, teams)), cells.map(litCells(litTeam("gone"), teams))]).toEqual([[true, true], [false, false]]);
  });
  it("takes no word that is no mark", () => {
    expect([isLit("team:a"), isLit("team:"), isLit("free"), isLit("teams")]).toEqual([true, false, true, false]);
    expect([isMark("broken"), isMark("toString"), isMark(""), isMark(null)]).toEqual([true, false, false, false]);
  });
});

describe("geometry", () => {
  it("groups nodes by model, the model with most GPUs first, and leaves out nodes without GPUs", () => {
    const map = readMap(answer([node("t", 1, [gpu()]), node("a", 0, eight), node("cpu", 0, [])]));
    expect(map.nodes.map((n) => n.name)).toEqual(["a", "t"]);
    expect([...map.firstCell]).toEqual([0, 8, 9]);
  });
  it("40,000 cells fit, none overlap, none lie outside", () => {
    const layout = layOut(huge, 1200, 660);
    expect(huge.cells.length).toBe(40_000);
    expect(layout.height).toBeLessThanOrEqual(660);
    const taken = new Set<string>();
    let right = 0;
    for (let i = 0; i < layout.x.length; i += 1) {
      right = Math.max(right, (layout.x[i] ?? 0) + layout.cell);
      taken.add(`${layout.x[i]},${layout.y[i]}`);
    }
    expect(right).toBeLessThanOrEqual(1200);
    expect(taken.size).toBe(40_000);
  });
  it("few cells grow, carry their index and their node's name", () => {
    const layout = layOut(readMap(answer([node("a", 0, eight)])), 1000, 400);
    expect([layout.named, layout.numbered, layout.cell]).toEqual([true, true, 96]);
  });
  it("takes smaller cells when that saves a lonely last line", () => {
    const four = readMap(answer(["a", "b", "c", "d"].map((name) => node(name, 0, eight))));
    expect(place(four, 1000, 34).lines).toBe(2);
    expect(layOut(four, 1000, 400).lines).toBe(1);
  });
  it("finds every cell under its own middle, and none in the void", () => {
    for (const width of [500, 1200]) {
      const layout = layOut(huge, width, 660);
      for (let i = 0; i < 40_000; i += 97) expect(cellAt(huge, layout, (layout.x[i] ?? 0) + layout.cell / 2, (layout.y[i] ?? 0) + layout.cell / 2)).toBe(i);
      expect(cellAt(huge, layout, width + 50, 40)).toBe(-1);
      expect(cellAt(huge, layout, 5, layout.height + 50)).toBe(-1);
    }
  });
  it("the hit test is fast enough for a moving pointer", () => {
    const layout = layOut(huge, 1200, 660);
    const start = performance.now();
    for (let i = 0; i < 10_000; i += 1) cellAt(huge, layout, (i * 7) % 1200, (i * 13) % 600);
    expect((performance.now() - start) / 10_000).toBeLessThan(0.2);
  });
  it("arrow keys stay on the map and move by lines", () => {
    const map = readMap(answer(["a", "b", "c", "d", "e"].map((name) => node(name, 0, eight))));
    const layout = place(map, 600, 30);
    expect(neighbour(layout, 0, "ArrowLeft")).toBe(0);
    expect(neighbour(layout, 0, "ArrowRight")).toBe(1);
    const down = neighbour(layout, 0, "ArrowDown");
    expect(layout.x[down]).toBe(layout.x[0]);
    expect(layout.y[down]).toBeGreaterThan(layout.y[0] ?? 0);
    expect(neighbour(layout, down, "ArrowUp")).toBe(0);
  });
});

const cells = (...gpus: MapGpu[]) => readMap(answer([node("a", 0, gpus)]));

const palette = (map: ReturnType<typeof cells>) => paletteOf(tokens.light, map);
const first = (map: ReturnType<typeof cells>) => map.cells[0] as Cell;

describe("reading", () => {
  it("a bare number holds the whole card, slices hold their shares", () => {
    expect(cells(gpu(1, 50, 1), gpu(2, 50, [[0, 0.25], [1, 0.5]]), gpu(0, 0, [])).cells.map((c) => c.slices)).toEqual([[[1, 1]], [[0, 0.25], [1, 0.5]], []]);
  });
  it("an idle time of 0 is none", () => {
    expect(cells(gpu(1, 0, 0, 0), gpu(1, 0, 0, 7200)).cells.map((c) => c.idleSeconds)).toEqual([null, 7200]);
  });
  it("cards are numbered by their place unless the node says otherwise", () => {
    const map = readMap(answer([node("a", 0, [gpu(), gpu()]), node("b", 0, [gpu(), gpu()], [0, 3])]));
    expect(map.cells.map((c) => c.index)).toEqual([0, 1, 0, 3]);
  });
  it("mode and status are words again", () => {
    const map = readMap(answer([["a", 1, 0, 1, eight, []]]));
    expect(map.nodes).toEqual([{ name: "a", model: 1, mode: "exclusive", status: "NotReady", cordoned: false }]);
    expect(sizeOf(answer([["a", 1, 0, 1, eight, []]]))).toBe(8);
  });
});

describe("colour", () => {

  it("free is an outline; held at 0 % is filled, and not on the teal scale", () => {
    const map = cells(gpu(0, 0, []), gpu(1, 0), gpu(1, 1));
    const [free, idle, busy] = map.cells.map((c) => fillOf(c, "util", palette(map), 0));
    expect(free).toBeNull();
    expect(idle).toBe(tokens.light.idleFill);
    expect(palette(map).teal).toContain(busy);
    expect(edgeOf(map.cells[0] as Cell, null, palette(map))).toBe("free");
    expect(edgeOf(map.cells[1] as Cell, idle ?? null, palette(map))).toBe("held");
    expect(isIdle(map.cells[1] as Cell)).toBe(true);
  });
  it("unknown utilization of a held card is not 0 %", () => {
    const map = cells(gpu(1, null));
    expect(fillOf(first(map), "util", palette(map), 0)).toBeNull();
    expect(isIdle(first(map))).toBe(false);
    expect(edgeOf(first(map), null, palette(map))).toBe("held");
  });
  it("a card that drains from being shared keeps its slices; one that drains from a whole use has none", () => {
    const map = cells(gpu(4, 50, [[0, 0.3], [0, 0.3]]), gpu(4, 50, [[0, 1]]), gpu(2, 50, [[0, 0.3]]), gpu(2, 50, []));
    expect(map.cells.map(isSplit)).toEqual([true, false, true, false]);
    expect(edgeOf(map.cells[0] as Cell, "#123456", palette(map))).toBe("held");
    expect(edgeOf(map.cells[1] as Cell, "#123456", palette(map))).toBe("none");
  });
  it("broken is hatched in every colouring", () => {
    const map = cells(gpu(3, null, []));
    expect(edgeOf(first(map), null, palette(map))).toBe("broken");
  });
  it("teams beyond eight share one grey", () => {
    const teams = Array.from({ length: 10 }, (_, i) => `t${i}`);
    const map = readMap(answer([node("a", 0, teams.map((_, i) => gpu(1, 50, [[i, 1 - i / 20]])))], teams));
    const colours = paletteOf(tokens.light, map).teams;
    expect(new Set(colours.slice(0, 8)).size).toBe(8);
    expect(colours.slice(8)).toEqual([tokens.light.rest, tokens.light.rest]);
    expect(heldByTeam(map)[0]).toEqual({ team: 0, gpus: 1 });
  });
  it("text is readable in both themes", () => {
    for (const t of Object.values(tokens)) {
      for (const ink of [t.text, t.text2, t.text3, t.blue, t.amber, t.red]) for (const ground of [t.surface, t.page, t.hover]) expect(contrast(ink, ground), `${ink} on ${ground}`).toBeGreaterThanOrEqual(4.5);
    }
  });
  it("a scale is monotonous in lightness", () => {
    for (const t of Object.values(tokens)) {
      const against = ramp(t.scaleTeal, 11).map((colour) => contrast(colour, t.surface));
      expect(against).toEqual([...against].sort((a, b) => a - b));
    }
  });
});

describe("the grid of cells", () => {
  // Two lines of two nodes with four cards each.
  const map = readMap(answer(["a", "b", "c", "d"].map((name) => node(name, 0, Array.from({ length: 4 }, () => gpu())))));
  const layout = place(map, 2 * (4 * 25 - 3) + 18, 22);
  const rows = rowsOf(layout);
  it("has the rows that are seen", () => {
    expect([rows.starts, [...rows.order]]).toEqual([[0, 8], [...Array(16).keys()]]);
    expect([...rows.rowOf]).toEqual([...Array(8).fill(0), ...Array(8).fill(1)]);
  });
  it("Home and End stay in the row, with Ctrl they leave it", () => {
    expect([leap(rows, 10, "Home", false), leap(rows, 10, "End", false), leap(rows, 10, "Home", true), leap(rows, 3, "End", true)]).toEqual([8, 15, 0, 15]);
  });
  it("Page keys keep the column and stop at the edges; other keys are none of them", () => {
    expect([leap(rows, 2, "PageDown", false), leap(rows, 10, "PageUp", false), leap(rows, 2, "PageUp", false), leap(rows, 2, "x", false)]).toEqual([10, 2, 2, -1]);
  });
});

describe("a map that is too large to hit", () => {
  it("can be enlarged, as far as a canvas can be drawn", () => {
    const huge = readMap(answer(Array.from({ length: 5000 }, (_, i) => node(`n${i}`, 0, Array.from({ length: 8 }, () => gpu())))));
    const fitting = layOut(huge, 1200, 660);
    const sizes = zoomSizes(huge, 1200, fitting.cell);
    expect(sizes.length).toBeGreaterThan(1);
    for (const size of sizes) {
      expect(size).toBeGreaterThan(fitting.cell);
      expect(place(huge, 1200, size).height).toBeLessThanOrEqual(15_000);
    }
  });
});

describe("the card of a cell", () => {
  it("stands below it, or above where there is more room, and never over its row", () => {
    expect(besideCell(100, 100, 20, 1000, 800)).toEqual({ left: 8, top: 130, maxHeight: 662 });
    expect(besideCell(500, 700, 20, 1000, 800)).toEqual({ left: 364, bottom: 110, maxHeight: 682 });
    expect(besideCell(990, 100, 20, 1000, 800).left).toBe(1000 - CARD_WIDTH - 8);
  });
});

describe("marks of cells without outline", () => {
  it("fill parts that differ", () => {
    for (const size of [2, 3, 4]) {
      const parts = (["broken", "closed", "unreachable", "unknown"] as const).map((edge) => touching(edge, size).join());
      expect(new Set(parts).size, `${size} px`).toBe(4);
    }
  });
});

const holding = (name: string, job = "") => ({ namespace: "team-a", name, job, container: "c", mode: "exclusive", units: 0, corePercent: 0, allocatedMiB: null, usedMiB: null, utilPercent: null });

describe("the second click", () => {
  it("leads to the job, the pod, all of several, or the node", () => {
    expect(holderPage("n 1", { pods: [holding("w-0", "mpijob/bert"), holding("w-1", "mpijob/bert")] }, true)).toBe("/jobs/team-a/mpijob/bert");
    expect(holderPage("n 1", { pods: [holding("nb")] }, true)).toBe("/gpus?node=n%201&open=team-a%2Fnb");
    expect(holderPage("n 1", { pods: [holding("a"), holding("b", "mpijob/bert")] }, true)).toBe("/gpus?node=n%201");
    expect([holderPage("n 1", undefined, true), holderPage("n 1", undefined, false)]).toEqual(["/gpus?node=n%201", "/nodes/n%201"]);
  });
});

const turns = (...by: number[]) => {
  let rest = 0;
  return by.map((each) => {
    const now = wheelStep(rest, each);
    rest = now.rest;
    return now.step;
  });
};

describe("the wheel", () => {
  it("one notch is one size: up is larger, down is smaller", () => {
    expect(turns(-100, -100, 100)).toEqual([1, 1, -1]);
  });
  it("a pinch adds up to a size, and one that turns back starts anew", () => {
    expect(turns(-20, -20, -20, -20)).toEqual([0, 0, 1, 0]);
    expect(turns(-40, 20, -40, -20)).toEqual([0, 0, 0, 1]);
  });
});

it("a name that is too long for its place keeps its end, by which nodes differ", () => {
  const context = { measureText: (text: string) => ({ width: 6 * [...text].length }) as TextMetrics };
  expect(["cn-beijing.192.168.0.18", "cn-beijing.192.168.0.19", "gpu-1"].map((name) => clipped(context, name, 90))).toEqual(["cn-b…2.168.0.18", "cn-b…2.168.0.19", "gpu-1"]);
  expect(clipped(context, "cn-beijing.192.168.0.18", 90)).toHaveLength(15);
  expect(clipped(context, "abcdef", 1)).toBe("…f");
});
