import { describe, expect, it } from "vitest";
import { cellKey, type Changes } from "../src/boards/quota/changes";
import { replayColumns } from "../src/boards/quota/replay/ReplayTables";
import { CAUSE_WORDS, changesText, DOING_WORDS, freeRows, replayOrder, replayRows, WHAT_WORDS } from "../src/boards/quota/replay/rows";
import type { QuotaReplay, ReplayFigures } from "../src/api/types";
import { type MessageKey, translate, type Values } from "../src/i18n/translate";

const t = (key: MessageKey, values?: Values) => translate("en", key, values);
const CHANGES: Changes = new Map([[cellKey("root.a", "cpu", "min"), "4"]]);
const FIGURES: ReplayFigures = { pods: 2, waitedHours: 1.5, waitedMeanSeconds: 2700, waitedP95Seconds: 5400, waiting: 0, evictions: 1, gpuHours: 8, idleGpuHours: 1, lostGpuHours: 0.5, idleCost: "4" };
const FREE = { gpuHours: 3, cost: null };
const FOUND = {
  leaves: [{ leaf: "root.a", happened: FIGURES, inForce: FIGURES, asked: null }],
  totals: { leaf: "", happened: FIGURES, inForce: FIGURES, asked: FIGURES },
  freeHappened: FREE,
  freeInForce: FREE,
  freeAsked: { gpuHours: 9, cost: "2" },
} as unknown as QuotaReplay;

describe("a replay is asked for", () => {
  it("with the changed numbers, nodes of a model, or both", () => {
    expect(replayOrder("7d", CHANGES, "", 1)).toEqual({ period: "7d", changes: [{ node: "root.a", resource: "cpu", min: "4", max: null }], nodes: [] });
    expect(replayOrder("24h", new Map(), "A100", 2)).toEqual({ period: "24h", changes: [], nodes: ["A100=+2"] });
    expect(replayOrder("24h", CHANGES, "A100", -3)?.nodes).toEqual(["A100=-3"]);
  });
  it("not without a change", () => {
    expect([replayOrder("7d", new Map(), "", 1), replayOrder("7d", new Map(), "A100", 0), replayOrder("7d", new Map(), "A100", 1.5), replayOrder("7d", new Map(), "A100", Number.NaN)]).toEqual([null, null, null, null]);
  });
  it("and is named by its changes", () => {
    expect(changesText({ changes: [{ node: "a", resource: "cpu", min: "1", max: "2" }], hasTree: false, nodes: ["A100=+1"] }, t)).toBe("2 changed numbers of the tree, A100=+1");
    expect(changesText({ changes: [], hasTree: true, nodes: [] }, t)).toBe("another tree");
  });
});

describe("what a replay found", () => {
  it("is up to three rows for each leaf, and all of them last", () => {
    expect(replayRows(FOUND).map(({ leaf, what }) => `${leaf} ${what}`)).toEqual(["root.a happened", "root.a inForce", " happened", " inForce", " asked"]);
    expect(new Set(replayRows(FOUND).map(({ key }) => key)).size).toBe(5);
  });
  it("has the GPUs that no pod held", () => {
    expect(freeRows(FOUND).map(({ what, gpuHours, cost }) => [what, gpuHours, cost])).toEqual([
      ["happened", 3, null],
      ["inForce", 3, null],
      ["asked", 9, "2"],
    ]);
  });
  it("has money only with prices", () => {
    expect(replayColumns(t, "").map(({ key }) => key)).not.toContain("idleCost");
    expect(replayColumns(t, "EUR").find(({ key }) => key === "idleCost")?.unit).toBe("EUR");
  });
  it("has words for all codes of the server", () => {
    expect([Object.keys(DOING_WORDS), Object.keys(WHAT_WORDS), Object.keys(CAUSE_WORDS)]).toEqual([
      ["reading", "in-force", "asked"],
      ["happened", "inForce", "asked"],
      ["gap", "evicted", "scheduler", "consequence", "unknown"],
    ]);
  });
});
