// The charts below a table show what the table does, whatever it was filtered by.
import { expect, test } from "vitest";
import { holdersText } from "../src/boards/devices/columns";
import { charted as chartedCards } from "../src/boards/devices/charted";
import { charted as chartedPods } from "../src/boards/holders/charted";
import { named } from "../src/charts/named";
import { seriesNames } from "../src/charts/series";

const CARDS = [
  { node: "n1", uuid: "GPU-a" },
  { node: "n2", uuid: "GPU-b" },
];
const PODS = [
  { namespace: "a", name: "x" },
  { namespace: "b", name: "x" },
];

test.each([
  ["", "", null],
  ["sort=-utilPercent&page=2", "", null],
  ["gpu_node=n1&GPU=0", "gpu_node=n1&GPU=0", null],
  ["gpu_node=n1&status=free", "GPU=GPU-a&GPU=GPU-b", 2],
  ["q=T4", "GPU=GPU-a&GPU=GPU-b", 2],
])("cards asked for by `%s` are charted by `%s`", (asked, filters, rows) => {
  const found = chartedCards(new URLSearchParams(asked), CARDS);
  expect([found.filters.toString(), found.rows]).toEqual([filters, rows]);
});

test("cards that no source gives a UUID are charted by their nodes", () => {
  expect(chartedCards(new URLSearchParams("q=n"), [{ node: "n1", uuid: "" }, { node: "n1", uuid: "" }]).filters.toString()).toBe("gpu_node=n1");
});

test.each([
  ["", "", null],
  ["namespace=a", "namespace=a", null],
  ["user=li", "holder=a%2Fx&holder=b%2Fx", 2],
])("pods asked for by `%s` are charted by `%s`", (asked, filters, rows) => {
  const found = chartedPods(new URLSearchParams(asked), PODS);
  expect([found.filters.toString(), found.rows]).toEqual([filters, rows]);
});

test("a refresh that brings the rows in another order asks for the same", () => {
  const [busy, idle] = ["status=held&sort=-utilPercent", "status=held&sort=-utilPercent"].map((asked, i) => chartedCards(new URLSearchParams(asked), i ? CARDS.toReversed() : CARDS));
  expect(busy?.filters.toString()).toBe(idle?.filters.toString());
});

test("no more is asked for than a chart can show and an address bears", () => {
  const many = Array.from({ length: 200 }, (_, i) => `GPU-${String(i).padStart(36, "0")}`);
  expect(named("GPU", many).rows).toBe(50);
  const long = many.map((name) => `${"n".repeat(60)}/${name.padEnd(253, "x")}`);
  const bounded = named("holder", long);
  expect(bounded.rows).toBeGreaterThan(10);
  expect(bounded.filters.toString().length).toBeLessThanOrEqual(6000);
});

test("what goes in and what comes out of a card are two lines", () => {
  const moved = ["tx", "rx"].map((direction) => ({ labels: { node: "n1", gpu: "0", uuid: "GPU-a", direction }, points: [] }));
  expect(seriesNames(moved)).toEqual(["n1 · 0 · tx", "n1 · 0 · rx"]);
});

test("a pod's lines bear its name, and container and card where it has several", () => {
  const one = { labels: { node: "n1", gpu: "0", uuid: "GPU-a", namespace: "a", pod: "x", container: "c" }, points: [] };
  const other = { labels: { node: "n1", gpu: "1", uuid: "GPU-b", namespace: "a", pod: "y", container: "c" }, points: [] };
  const second = { labels: { node: "n1", gpu: "2", uuid: "GPU-c", namespace: "a", pod: "y", container: "c" }, points: [] };
  expect(seriesNames([one, other, second])).toEqual(["a/x", "a/y · c · 1", "a/y · c · 2"]);
});

test.each([
  [[], "—"],
  [["a/web-1"], "a/web-1"],
  [["a/web-1", "b/web-2", "b/web-3"], "a/web-1 +2"],
])("of the holders %j of a card its row says %s", (holders, text) => {
  expect(holdersText({ holders })).toBe(text);
});
