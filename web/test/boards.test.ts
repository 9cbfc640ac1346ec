import { describe, expect, it } from "vitest";
import type { GpuRow, Instance, JobRow, NodePod, NodeRow, QuotaRow, Sentence, Sharing } from "../src/api/types";
import { besideOf, jobColumns, requested, whyOf } from "../src/boards/jobs/columns";
import { instanceColumns } from "../src/boards/jobs/instances";
import { wordOf } from "../src/boards/jobs/LifeBar";
import { areEventsKnown, hasRun, jobSentence } from "../src/boards/jobs/sentence";
import { CHART_NODES_MAX, chartFilters, focusOf, mustAsk, uuidsQuery } from "../src/boards/nodes/focus";
import { isolationWord } from "../src/boards/nodes/columns";
import { cardColumns, podColumns } from "../src/boards/nodes/NodeCards";
import { heldColumns, heldCsv, heldRows } from "../src/boards/nodes/NodeHeld";
import { isInTrouble } from "../src/boards/nodes/NodeMore";
import { noticesOf } from "../src/boards/nodes/NodeFacts";
import { quotaColumns } from "../src/boards/quota/QuotaBoard";
import { overMaxWords } from "../src/boards/quota/UsedAmount";
import { nodeSentence } from "../src/boards/nodes/sentence";
import { gpus, memoryFraction } from "../src/format/format";
import { type Cell, type CellState, STATES } from "../src/gpumap/cells";
import { countMarks } from "../src/gpumap/counts";
import { wholeOf } from "../src/gpumap/draw";
import { isCardInFocus } from "../src/gpumap/focus";
import { sentenceWords } from "../src/i18n/sentences";
import { instancesHeld } from "../src/gpumap/instances";
import { type Locale, type MessageKey, translate, translateCode, type Values } from "../src/i18n/translate";

const words = (locale: Locale) => (key: MessageKey, values?: Values) => translate(locale, key, values);
const en = words("en");
const zh = words("zh-CN");

const code = (_prefix: string, _code: string, _values: object, fallback: string): string => fallback;
const said = (t: typeof en) => ({ t, code });

it("a job whose pods do not all run yet says how many do; one whose pods are gone just ran", () => {
  const counts = [[1, 2], [2, 2], [null, null]] as const;
  const said = counts.map(([count, of]) => wordOf({ step: "running", at: "2026-08-01T08:00:00Z", seconds: 1, count, of, status: "" }));
  expect(said).toEqual(["runningSome", "running", "running"]);
});

const warned = (...sources: string[]) => ({ warnings: sources.map((source) => ({ code: "forbidden", source, message: "", hint: "", values: {} })) });

it("no event is only said where events were read", () => {
  expect([warned(), warned("nodes"), warned("nodes", "events")].map(areEventsKnown)).toEqual([true, true, false]);
});

describe("the instances of a job", () => {
  const columns = instanceColumns(said(en));
  const shown = (key: string, of: Partial<Instance>) => columns.find((c) => c.key === key)?.cell({ gpuIndexes: [], gpuUuids: [], gpus: 0, ...of } as Instance);
  it("a card's index is never mixed with a count", () => {
    expect(shown("cards", { gpuIndexes: [0, 3], gpus: 2 })).toBe("0, 3");
    expect(shown("gpus", { gpuIndexes: [0, 3], gpus: 2 })).toBe("2");
    expect(shown("cards", { gpus: 0 })).toBe("—");
    expect(shown("cards", { gpus: 1 })).toBe("—");
    expect(shown("gpus", { gpus: 0.5 })).toBe("0.5");
  });
});

const headsOf = (t: typeof en) => Object.fromEntries(jobColumns(said(t)).map((c) => [c.key, c.head]));

describe("the columns of the jobs", () => {
  it("name allocated memory with the operator's literal", () => {
    expect(headsOf(zh)["gpuMemoryAllocatedMiB"]).toBe("请求的GPU显存");
    expect(headsOf(en)["gpuMemoryAllocatedMiB"]).toBe("Allocated GPU Memory");
  });
  it("have a different head each", () => {
    for (const t of [en, zh]) expect(new Set(Object.values(headsOf(t))).size).toBe(jobColumns(said(t)).length);
  });
});

describe("a quota that uses more than its max", () => {
  it("says by how much, in words and with the unit", () => {
    expect(overMaxWords("count", 3, en)).toBe("over max by 3");
    expect(overMaxWords("cores", 2.5, en)).toBe("over max by 2.5 cores");
    expect(overMaxWords("bytes", 3 * 2 ** 30, en)).toBe("over max by 3.0 GiB");
    expect(overMaxWords("count", 3, zh)).toBe("超出上限 3");
    expect(overMaxWords("count", 0, en)).toBe("");
  });
  it("says it on its own line, not on those of its namespaces", () => {
    const used = quotaColumns(en, "count", true).find((column) => column.key === "used");
    const row = { overMax: 3, lost: 0 } as QuotaRow;
    const seen = (namespace: string | null) => used?.cell({ key: "", kind: "leaf", row, namespace, used: 8 }) as { props: { over: number; text: string } };
    expect([seen(null).props.over, seen("team-a").props.over, seen(null).props.text]).toEqual([3, 0, "8"]);
  });
});

const trouble = (status: string, health: string) => isInTrouble({ node: { status } as NodeRow, gpus: [{ health } as GpuRow] });

it("of a node that is not heard of, or has a broken card, it is not said that there are no warnings", () => {
  expect([trouble("Ready", "Healthy"), trouble("Ready", "Unhealthy"), trouble("Unknown", "Unknown"), trouble("NotReady", "Healthy")]).toEqual([false, true, true, true]);
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
  it("a card is lit that the address names by its UUID", () => {
    const params = filters("GPU=GPU-a1&GPU=0&GPU=gpu-b2");
    expect(uuidsQuery(params)?.toString()).toBe("GPU=GPU-a1&GPU=gpu-b2&size=500");
    expect(uuidsQuery(filters("GPU=0"))).toBeNull();
    const focus = focusOf(filters("GPU=GPU-a1"), null, [{ node: "a", index: 3 }]);
    expect([isCardInFocus(focus, "a", 3), isCardInFocus(focus, "b", 3), isCardInFocus(focus, "a", 0)]).toEqual([true, false, false]);
    expect(isCardInFocus(focusOf(params, null), "b", 0)).toBe(true);
    expect(isCardInFocus(focusOf(filters("GPU=nobody"), null, []), "a", 0)).toBe(false);
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

const sharing = (more: Partial<Sharing>): Sharing => ({ offers: true, placement: "", conflict: "", unitsFree: 2, largestFree: 2, largestFreeMiB: 2154, ...more });
const spokenOf = (sentence: Sentence) => ({ ...sentence, values: Object.fromEntries(Object.entries(sentence.values).map(([key, value]) => [key, typeof value === "number" ? gpus(value) : value])) });

const card = (more: Partial<GpuRow>) => ({ index: 0, uuid: "GPU-a", units: 14, unitsAllocated: 12, unitsFree: 2, coreFreePercent: null, coreAllocatedPercent: null, memoryTotalMiB: 15079, memoryAllocatedMiB: 12924, memoryFreeMiB: 2154, flags: [], pods: [], migInstances: [], ...more }) as unknown as GpuRow;
const seat = { namespace: "team-a", name: "nb" };

const cardShown = (of: Partial<GpuRow>) => {
  const columns = cardColumns({ gpus: [card(of)] }, en);
  return Object.fromEntries(columns.map((c) => [c.key, c.cell(card(of))]));
};

describe("the cards of a node", () => {
  it("a shared one says units granted and free, and its memory", () => {
    const row = cardShown({});
    expect([row["units"], row["granted"], row["free"]]).toEqual(["12 / 14", "12.6 / 14.7 GiB", "2 units"]);
  });
  it("a whole one has memory and no units; what nobody knows is a dash", () => {
    const row = cardShown({ units: 0, unitsAllocated: 0, unitsFree: 0, memoryFreeMiB: 15079 });
    expect([row["units"], row["free"]]).toEqual([undefined, "14.7 GiB"]);
    expect(cardShown({ units: 0, memoryFreeMiB: null })["free"]).toBe("—");
  });
  it("cores stand there only where the node offers them", () => {
    expect(cardShown({})["cores"]).toBeUndefined();
    expect(cardShown({ coreAllocatedPercent: 30, coreFreePercent: 70 })["cores"]).toBe("30 / 100");
  });
  it("two containers of one pod are one holder", () => {
    expect(cardShown({ pods: [seat, seat] as GpuRow["pods"] })["pods"]).toBe("team-a/nb");
  });
});

const podOn = (name: string, more: Partial<NodePod> = {}) => ({ namespace: "team-a", name, job: "", status: "Running", units: 0, gpus: 1, gpuIndexes: [], pending: false, ...more }) as unknown as NodePod;
const seatOf = (name: string, container = "c") => ({ namespace: "team-a", name, container, job: "", units: 2, corePercent: 0 }) as unknown as GpuRow["pods"][number];
const whole = (index: number, more: Partial<GpuRow> = {}) => card({ index, units: 0, health: "Healthy", ...more });

const part = (id: number, pods: GpuRow["pods"]) => ({ id, profile: "1g.18gb", memoryTotalMiB: 17894, memoryUsedMiB: 9000, utilPercent: 40, pods });

const heldKeys = (gpu: GpuRow) => heldColumns({ gpus: [gpu], pods: [] }, en).map((c) => c.key);
const faultWidth = (reason: string) => heldColumns({ gpus: [whole(0, { health: "Unhealthy", reason })], pods: [] }, en).find((c) => c.key === "health")?.width ?? 0;

describe("the cards of a node and who holds them, in one table", () => {
  it("a whole card and its one holder are one row, however many containers it has", () => {
    const rows = heldRows({ gpus: [whole(0, { pods: [seatOf("a", "x"), seatOf("a", "y")] }), whole(1)], pods: [podOn("a")] });
    expect(rows.map((row) => [row.key, row.pod?.name])).toEqual([["0", "a"], ["1", undefined]]);
  });
  it("holders of a shared card follow it, each with its part; nobody is shown twice", () => {
    const rows = heldRows({ gpus: [card({ pods: [seatOf("a"), seatOf("b")] })], pods: [podOn("a"), podOn("b")] });
    expect(rows.map((row) => row.key)).toEqual(["0", "0 team-a/a/c", "0 team-a/b/c"]);
  });
  it("who holds a card that nobody can name is at the end, on no card", () => {
    const detail = { gpus: [whole(0, { pods: [seatOf("a")] })], pods: [podOn("a"), podOn("lost")] };
    const rows = heldRows(detail);
    expect(rows.map((row) => row.key)).toEqual(["0", "?team-a/lost"]);
    expect(heldColumns(detail, en).find((c) => c.key === "index")?.cell(rows[1] as (typeof rows)[number])).toBe("");
  });
  it("each instance of a divided card has its row, with who has it or nobody", () => {
    const gpu = whole(0, { pods: [seatOf("a")], migInstances: [part(7, [seatOf("a")]), part(8, [])] });
    const rows = heldRows({ gpus: [gpu], pods: [podOn("a")] });
    expect(rows.map((row) => [row.key, row.pod?.name])).toEqual([["0", undefined], ["0 7 0", "a"], ["0 8 0", undefined]]);
    const columns = heldColumns({ gpus: [gpu], pods: [podOn("a")] }, en);
    const shown = (key: string) => rows.map((row) => columns.find((c) => c.key === key)?.cell(row));
    expect(shown("instance")).toEqual([null, "1g.18gb #7", "1g.18gb #8"]);
    expect(shown("pod").slice(2)).toEqual(["—"]);
    expect(shown("memory").slice(1)).toEqual([memoryFraction(9000, 17894), memoryFraction(9000, 17894)]);
    expect([instancesHeld(gpu, en), instancesHeld(gpu, zh), instancesHeld(whole(1), en)]).toEqual(["1 of 2 instances", "1 / 2 个实例", null]);
    expect(heldKeys(whole(1))).not.toContain("instance");
  });
  it("as a file each row names its card, and who is on none names none", () => {
    const rows = heldRows({ gpus: [card({ index: 3, uuid: "GPU-c", health: "Healthy", pods: [seatOf("a"), seatOf("b")] })], pods: [podOn("a"), podOn("lost")] });
    const cells = heldCsv(rows) as { index: number | null; uuid: string; name: string; status: string }[];
    expect(cells.map(({ index, uuid, name, status }) => [index, uuid, name, status])).toEqual([[3, "GPU-c", "", ""], [3, "GPU-c", "a", "Running"], [3, "GPU-c", "b", ""], [null, "", "lost", "Running"]]);
  });
  it("the longest fault has room", () => {
    expect(faultWidth("XID 79, the GPU has fallen off the bus")).toBeGreaterThan(faultWidth("XID 79") + 200);
    expect(faultWidth("XID 79") * 0.93).toBeGreaterThan(7 * "Unhealthy · XID 79".length + 30);
  });
  it("what is wrong with a card stands beside its number, in sight at any width", () => {
    expect(heldKeys(whole(0)).slice(0, 2)).toEqual(["index", "health"]);
  });
  it("units and containers are columns only where cards are shared", () => {
    expect(heldKeys(whole(0))).not.toContain("units");
    expect(heldKeys(card({ health: "Healthy" }))).toContain("units");
  });
});

const podCell = (key: string, of: Partial<NodePod>) => podColumns(en).find((c) => c.key === key)?.cell({ gpuIndexes: [], units: 0, gpus: 0, pending: false, ...of } as NodePod);

describe("the pods of a node", () => {
  it("one on a card that nobody knows is never on card 0 and holds no counted GPU", () => {
    expect(podCell("cards", { gpuIndexes: [0] })).toBe("0");
    expect(podCell("cards", {})).toBe("—");
    expect(podCell("cards", { pending: true })).not.toBe("—");
    expect([podCell("units", { pending: true, units: 4 }), podCell("gpus", { pending: true })]).toEqual(["4", "—"]);
  });
});

describe("what stands above the numbers of a node", () => {
  const quiet = { gpuUnit: "GiB", gpuUnitsOvercommitted: 0, gpusDraining: 0, gpuUnitsPending: 0 };
  const codes = (more: Partial<NodeRow>, how: Sharing | null = sharing({})) => noticesOf({ node: node({ ...quiet, ...more }), sharing: how }, en).map(([code]) => code);
  it("nothing on a node that is well", () => {
    expect([codes({}), codes({}, null)]).toEqual([[], []]);
  });
  it("the gravest first", () => {
    expect(codes({ gpuUnitsPending: 4, gpusDraining: 1, gpuUnitsOvercommitted: 1 })).toEqual(["overcommitted", "draining", "pending"]);
    expect(codes({}, sharing({ offers: false }))).toEqual(["closed"]);
    expect(codes({}, sharing({ offers: false, conflict: "label a overrides b" }))).toEqual(["conflict"]);
  });
  it("one card is switching, two are", () => {
    const said = [1, 2].map((n) => noticesOf({ node: node({ ...quiet, gpusDraining: n }), sharing: null }, en)[0]?.[1]);
    expect(said).toEqual([expect.stringContaining("1 GPU is "), expect.stringContaining("2 GPUs are ")]);
  });
});

describe("who limits memory", () => {
  it("the guard is never called isolation without the word cooperative", () => {
    expect([isolationWord("guard", en), isolationWord("", en), isolationWord("later", en)]).toEqual(["guard (cooperative)", "—", "later"]);
    expect(isolationWord("guard", zh)).toContain("协作");
  });
});

const speak = (locale: Locale, sentence: Sentence) => sentenceWords(sentence, { t: words(locale), code: (prefix, of, given, text) => translateCode(locale, prefix, of, given, text) }).replaceAll(/[\u2068\u2069]/g, "");

const broken = (meaning: string): Sentence => ({ code: "attention-gpu-broken-xid", values: { n: 2, xid: 79, meaning }, text: "" });

describe("why something waits, as a hint", () => {
  it("our own words, then what the source said beside them", () => {
    const none = { sentence: null, clauses: [] };
    expect(whyOf({ ...none, reason: "Unschedulable", message: "0/6 nodes are available.", room: "" }, said(en))).toBe("0/6 nodes are available.");
    expect([whyOf({ ...none, reason: "x", message: "m", room: "" }, said(en)), whyOf(null, said(en))]).toEqual(["m", ""]);
    const sentence = { code: "why-full", values: {}, text: "needs 4 GPUs on one node; the freest of 2, a, has 1" };
    expect(whyOf({ reason: "Unschedulable", message: "0/6", room: "", sentence, clauses: [] }, said(en))).toBe(`${sentence.text}\n0/6`);
    const short = { code: "why-share-memory", values: {}, text: "needs 4 GiB on one GPU" };
    expect(whyOf({ reason: "Unschedulable", message: "0/6", room: "0/2 nodes have room", sentence: short, clauses: [] }, said(en))).toBe(`${short.text}\n0/6\n0/2 nodes have room`);
    const own = { code: "wait-suspended", values: {}, text: "the job is suspended" };
    expect(whyOf({ reason: "Suspended", message: own.text, room: "", sentence: own, clauses: [] }, said(en))).toBe(own.text);
    const clauses = [{ code: "clause-asks", values: {}, text: "cpu asks 5" }, { code: "clause-at-max", values: {}, text: "root uses 20 of max 20" }];
    const quota = { reason: "OverMax", message: "cpu asks 5; root uses 20 of max 20", room: "", sentence: null, clauses };
    expect(whyOf(quota, said(en))).toBe("cpu asks 5; root uses 20 of max 20");
    expect(besideOf(quota, said(en))).toBe(" · OverMax: cpu asks 5; root uses 20 of max 20");
  });
  it("in a row what is asked and where there is too little; the rest stands in the panel", () => {
    const none = { message: "m", room: "" };
    const clauses = ["cpu asks 5", "root uses 20 of max 20", "root.a uses 1 of guaranteed 2"].map((text) => ({ code: "clause-x", values: {}, text }));
    expect(besideOf({ ...none, reason: "OverMax", sentence: null, clauses }, said(en))).toBe(" · OverMax: cpu asks 5; root uses 20 of max 20");
    const sentence = { code: "why-absent-leaf", values: { asked: 4, resource: "nvidia.com/gpu", labels: "", leaf: "a", used: 1, min: 2 }, text: "" };
    const spoken = { t: en, code: (prefix: string, of: string, given: Readonly<Record<string, string | number | null | undefined>>, text: string) => translateCode("en", prefix, of, given, text) };
    expect(besideOf({ ...none, reason: "Unschedulable", sentence, clauses: [] }, spoken).replaceAll(/[\u2068\u2069]/g, "")).toBe(" · It needs 4 GPUs; no node that it can use has any.");
  });
  it("an XID is told in the reader's language, one that nobody translated in the server's words", () => {
    expect(speak("en", broken("GPU has fallen off the bus"))).toBe("2 GPUs broken: XID 79, GPU has fallen off the bus.");
    expect(speak("zh-CN", broken("GPU has fallen off the bus"))).toBe("2 张 GPU 卡故障：XID 79，GPU 已从总线上掉线。");
    expect(speak("zh-CN", broken("CE12: Unknown Error"))).toBe("2 张 GPU 卡故障：XID 79，复制引擎 CE12：未知错误。");
    expect(speak("zh-CN", broken("toString"))).toBe("2 张 GPU 卡故障：XID 79，toString。");
  });
  it("each language names amounts, labels and units in its own words", () => {
    const values = { asked: 4, resource: "nvidia.com/gpu", nodes: 2, best: "a", had: 1, labels: "gpu=A100" };
    const full = { code: "why-full", values, text: "" };
    expect(speak("en", full)).toBe("It needs 4 GPUs on one node with gpu=A100; the freest of 2, a, has 1.");
    expect(speak("zh-CN", full)).toBe("需要在一个节点（带标签 gpu=A100）上有 4 张 GPU 卡；2 个中最空的 a 还有 1。");
    expect(speak("en", { code: "why-never", values: { ...values, asked: 1500.5, resource: "memory", labels: "" }, text: "" })).toContain("It needs 1,500.5 GiB of memory on one node; the largest");
    expect(speak("zh-CN", { code: "why-share-memory", values: { units: 4, unit: "GiB", cards: 1, nodes: 1, best: "t4", free: 2, answers: "x" }, text: "" })).toBe("需要在一张 GPU 卡上有 4 GiB；1 个共享 GPU 的节点中最空的 t4，单卡还剩 2 GiB。");
    const starved = { code: "attention-leaf-starved", values: { n: 1, pods: 1200, used: 2.5, min: 8, unit: "cores", resource: "cpu" }, text: "" };
    expect(speak("en", starved)).toBe("1 quota below the guaranteed minimum while 1,200 pods wait; the worst has 2.5 of 8 cores (cpu).");
    expect(speak("zh-CN", { code: "quota-invalid", values: { fault: "x twice", kind: "DuplicateName" }, text: "" })).toContain("两个节点同名");
  });
});

describe("a split cell", () => {
  it("slices of more than the card share the cell's width", () => {
    expect(wholeOf({ slices: [[0, 0.5], [1, 0.25]] })).toBe(1);
    expect(wholeOf({ slices: [[0, 1], [1, 0.25]] })).toBe(1.25);
  });
});

describe("the sentence of a detail page", () => {
  it("of a node", () => {
    expect(say(nodeSentence(node({}), null))).toBe("6 of 8 GPUs allocated, mean utilization 71.3%.");
    expect(say(nodeSentence(node({ gpusUnhealthy: 1, gpuUtilPercent: null }), null))).toBe("6 of 8 GPUs allocated, mean utilization —; 1 GPU unhealthy.");
    expect(say(nodeSentence(node({ gpusTotal: 0 }), null))).toBe("This node has no GPUs.");
  });
  it("of a job", () => {
    expect(say(jobSentence(job("Running")))).toBe("1 of 2 instances running on 4 of 8 GPUs for 1h1m.");
    const waited = { ...job("Running"), heldSeconds: 480 };
    expect(say(jobSentence(waited))).toBe("1 of 2 instances running on 4 of 8 GPUs for 8m.");
    const silent = { ...waited, instances: { ...waited.instances, running: 0, unknown: 2 } };
    expect(say(jobSentence(silent))).toBe("2 of 2 instances on unreachable nodes, 0 running; 4 GPUs held for 8m.");
    expect(say(jobSentence(job("Pending")))).toBe("Waiting for 8 GPUs; 1 of 2 instances running.");
    expect(say(jobSentence(job("Failed")))).toBe("Failed after 1h1m on 8 GPUs; 1 of 2 instances failed.");
    expect(say(jobSentence(job("Odd")))).toBe("Odd · Suspended");
  });
  it("a job that never ran has no curves", () => {
    const waits = { ...job("Pending"), startedAt: null, instances: { ...job("Pending").instances, running: 0, unknown: 0, succeeded: 0, failed: 0 } };
    expect(hasRun(waits)).toBe(false);
    expect(hasRun({ ...waits, startedAt: "2026-01-05T08:00:00Z" })).toBe(true);
    expect(hasRun({ ...waits, instances: { ...waits.instances, failed: 1 } })).toBe(true);
  });
  it("of a node that shares its cards: what one card still has, not the sum", () => {
    const shared = node({ gpusTotal: 1, gpusAllocated: 0.857, gpuUnit: "GiB", gpuUnitsTotal: 14, gpuUnitsAllocated: 12 });
    expect(say(spokenOf(nodeSentence(shared, sharing({ largestFree: 2 }))))).toBe("0.9 of 1 GPU allocated (12 of 14 units); up to 2 units free on one GPU.");
  });
  it("of a job that shares cards: memory, never 0 GPUs", () => {
    const shares = { ...job("Pending"), gpusRequested: 0, gpuMemoryRequestedMiB: 4096 };
    expect(say(jobSentence(shares))).toBe("Waiting for 4.0 GiB of shared GPU memory; 1 of 2 instances running.");
    expect(requested(shares)).toBe("4.0 GiB");
    expect(requested({ gpusRequested: 0, gpuMemoryRequestedMiB: null })).toBe("0");
    for (const status of ["Running", "Pending", "Succeeded", "Failed"]) expect(say(jobSentence({ ...shares, status }))).not.toContain("0 GPU");
  });
});

const cell = (state: CellState, util: number | null): Cell => ({ node: 0, index: 0, state, util, memory: null, celsius: null, idleSeconds: null, slices: state === "allocated" ? [[0, 1]] : [] });

describe("the legend of the map", () => {
  it("a silent card and a card of unknown holder are two things", () => {
    const cells = [cell("unknown", 40), cell("unknown", null), cell("allocated", null), cell("allocated", 0), cell("free", null), cell("unhealthy", null), cell("closed", null), cell("unreachable", null), cell("shared", 3)];
    expect(countMarks({ nodes: [], teams: [], models: [], cells, firstCell: new Int32Array(1) })).toEqual({ held: 3, free: 1, idle: 1, broken: 1, draining: 0, closed: 1, unreachable: 1, noReading: 2, holderUnknown: 2 });
  });
  it("states add up to the cards", () => {
    const cells = STATES.flatMap((state, times) => Array.from({ length: times + 1 }, () => cell(state, null)));
    const { held, free, broken, draining, closed, unreachable, holderUnknown } = countMarks({ nodes: [], teams: [], models: [], cells, firstCell: new Int32Array(1) });
    expect(held + free + broken + draining + closed + unreachable + holderUnknown).toBe(cells.length);
  });
});
