// The charts below a table show what the table does, whatever it was filtered by.
import { expect, test } from "vitest";
import { charted as chartedCards } from "../src/boards/devices/charted";
import { charted as chartedPods } from "../src/boards/holders/charted";
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
  ["", ""],
  ["sort=-utilPercent&page=2", ""],
  ["gpu_node=n1&GPU=0", "gpu_node=n1&GPU=0"],
  ["gpu_node=n1&status=free", "GPU=GPU-a&GPU=GPU-b"],
  ["q=T4", "GPU=GPU-a&GPU=GPU-b"],
])("cards asked for by `%s` are charted by `%s`", (asked, filters) => {
  expect(chartedCards(new URLSearchParams(asked), CARDS).toString()).toBe(filters);
});

test("cards that no source gives a UUID are charted by their nodes", () => {
  expect(chartedCards(new URLSearchParams("q=n"), [{ node: "n1", uuid: "" }, { node: "n1", uuid: "" }]).toString()).toBe("gpu_node=n1");
});

test.each([
  ["", ""],
  ["namespace=a", "namespace=a"],
  ["user=li", "namespace=a&namespace=b&pod=x"],
])("pods asked for by `%s` are charted by `%s`", (asked, filters) => {
  expect(chartedPods(new URLSearchParams(asked), PODS).toString()).toBe(filters);
});

test("a pod's lines bear its name, and container and card where it has several", () => {
  const one = { labels: { node: "n1", gpu: "0", uuid: "GPU-a", namespace: "a", pod: "x", container: "c" }, points: [] };
  const other = { labels: { node: "n1", gpu: "1", uuid: "GPU-b", namespace: "a", pod: "y", container: "c" }, points: [] };
  const second = { labels: { node: "n1", gpu: "2", uuid: "GPU-c", namespace: "a", pod: "y", container: "c" }, points: [] };
  expect(seriesNames([one, other, second])).toEqual(["a/x", "a/y · c · 1", "a/y · c · 2"]);
});
