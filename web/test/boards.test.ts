import { describe, expect, it } from "vitest";
import type { Instance, JobRow, NodeRow } from "../src/api/types";
import { jobColumns } from "../src/boards/jobs/columns";
import { instanceColumns } from "../src/boards/jobs/instances";
import { jobSentence } from "../src/boards/jobs/sentence";
import { CHART_NODES_MAX, chartFilters, focusOf, mustAsk } from "../src/boards/nodes/focus";
import { nodeSentence } from "../src/boards/nodes/sentence";
import type { Cell, CellState } from "../src/gpumap/cells";
import { countMarks } from "../src/gpumap/counts";
import { isCardInFocus } from "../src/gpumap/focus";
import { type Locale, type MessageKey, translate, translateCode, type Values } from "../src/i18n/translate";

const words = (locale: Locale) => (key: MessageKey, values?: Values) => translate(locale, key, values);
const en = words("en");
const zh = words("zh-CN");

describe("the instances of a job", () => {
  const columns = instanceColumns(en);
  const shown = (key: string, of: Partial<Instance>) => columns.find((c) => c.key === key)?.cell({ gpuIndexes: [], gpuUuids: [], gpus: 0, ...of } as Instance);
  it("a card's index is never mixed with a count", () => {
    expect(shown("cards", { gpuIndexes: [0, 3], gpus: 2 })).toBe("0, 3");
    expect(shown("gpus", { gpuIndexes: [0, 3], gpus: 2 })).toBe("2");
    expect(shown("cards", { gpus: 0 })).toBe("—");
    expect(shown("cards", { gpus: 1 })).toBe("—");
    expect(shown("gpus", { gpus: 0.5 })).toBe("0.5");
  });
});

const headsOf = (t: typeof en) => Object.fromEntries(jobColumns(t).map((c) => [c.key, c.head]));

describe("the columns of the jobs", () => {
  it("name allocated memory with the operator's literal", () => {
    expect(headsOf(zh)["gpuMemoryAllocatedMiB"]).toBe("请求的GPU显存");
    expect(headsOf(en)["gpuMemoryAllocatedMiB"]).toBe("Allocated GPU Memory");
  });
  it("have a different head each", () => {
    for (const t of [en, zh]) expect(new Set(Object.values(headsOf(t))).size).toBe(jobColumns(t).length);
  });
});

const filters = (query: string) => new URLSearchParams(query);

describe("the filters of the Nodes board", () => {
  it("names and cards are known here; the rest is asked", () => {
    expect(["", "gpu_node=a&GPU=1", "status=Ready", "mode=share", "model=T4", "q=x"].map((query) => mustAsk(filters(query)))).toEqual([false, false, true, true, true, true]);
  });
  it("the map dims nodes and cards", () => {
    const focus = focusOf(filters("gpu_node=a&gpu_node=b&GPU=3"), null);
    expect([isCardInFocus(focus, "a", 3), isCardInFocus(focus, "a", 2), isCardInFocus(focus, "c", 3)]).toEqual([true, false, false]);
    const onlyCard = focusOf(filters("GPU=0"), null);
    expect([isCardInFocus(onlyCard, "x", 0), isCardInFocus(onlyCard, "x", 1)]).toEqual([true, false]);
    expect(isCardInFocus(focusOf(filters(""), null), "x", 5)).toBe(true);
    expect(isCardInFocus(focusOf(filters("gpu_node=a&status=Ready"), ["b"]), "a", 0)).toBe(false);
  });
  it("the charts show the nodes that match, or nothing", () => {
    expect(chartFilters(filters("mode=share&GPU=1"), ["b", "c"])?.toString()).toBe("gpu_node=b&gpu_node=c&GPU=1");
    expect(chartFilters(filters("q=nothing"), [])).toBeNull();
    expect(chartFilters(filters("gpu_node=a"), null)?.toString()).toBe("gpu_node=a");
    expect(chartFilters(filters("status=Ready"), Array.from({ length: CHART_NODES_MAX + 1 }, String))?.toString()).toBe("");
  });
});

const say = (sentence: { code: string; values: Values; text: string }) => translateCode("en", "sentence", sentence.code, sentence.values, sentence.text);
const node = (more: Partial<NodeRow>) => ({ gpusTotal: 8, gpusAllocated: 6, gpusUnhealthy: 0, gpuUtilPercent: 71.25, ...more }) as NodeRow;
const job = (status: string) => ({ status, state: "Suspended", gpusAllocated: 4, gpusRequested: 8, durationSeconds: 3700, instances: { running: 1, desired: 2, failed: 1, pending: 1, succeeded: 0 } }) as unknown as JobRow;

describe("the sentence of a detail page", () => {
  it("of a node", () => {
    expect(say(nodeSentence(node({})))).toBe("6 of 8 GPUs allocated, mean utilization 71.3%.");
    expect(say(nodeSentence(node({ gpusUnhealthy: 1, gpuUtilPercent: null })))).toBe("6 of 8 GPUs allocated, mean utilization —; 1 GPU unhealthy.");
    expect(say(nodeSentence(node({ gpusTotal: 0 })))).toBe("This node has no GPUs.");
  });
  it("of a job", () => {
    expect(say(jobSentence(job("Running")))).toBe("1 of 2 instances running on 4 of 8 GPUs for 1h1m.");
    expect(say(jobSentence(job("Pending")))).toBe("Waiting for 8 GPUs; 1 of 2 instances running.");
    expect(say(jobSentence(job("Failed")))).toBe("Failed after 1h1m on 8 GPUs; 1 of 2 instances failed.");
    expect(say(jobSentence(job("Odd")))).toBe("Odd · Suspended");
  });
});

const cell = (state: CellState, util: number | null): Cell => ({ node: 0, index: 0, state, util, memory: null, celsius: null, idleSeconds: null, slices: state === "allocated" ? [[0, 1]] : [] });

describe("the legend of the map", () => {
  it("a silent card and a card of unknown holder are two things", () => {
    const cells = [cell("unknown", 40), cell("unknown", null), cell("allocated", null), cell("allocated", 0), cell("free", null), cell("unhealthy", null)];
    expect(countMarks({ nodes: [], teams: [], models: [], cells, firstCell: new Int32Array(1) })).toEqual({ free: 1, idle: 1, broken: 1, draining: 0, noReading: 2, holderUnknown: 2 });
  });
});
