import { describe, expect, it } from "vitest";
import type { SearchHit } from "../src/api/types";
import { BOARDS } from "../src/app/boards";
import { type Findable, foundThere, hitsOf, joined, keyOf, marked, nearness } from "../src/app/finding";
import { namedCommands, namedPages } from "../src/app/named";
import { catalogues, type Locale } from "../src/i18n/translate";

const node = (name: string, model = ""): Findable => ({ kind: "nodes", to: `/nodes/${name}`, fields: [["", name], ["GPU Model", model]] });

describe("what a text finds", () => {
  it("the very text before its beginning, before a word in it, before anywhere", () => {
    expect(["gpu-1", "gpu-10", "a-gpu-1", "xgpu-1", "cpu"].map((text) => nearness(text, "gpu-1"))).toEqual([0, 1, 2, 3, null]);
    expect(hitsOf("GPU-1", [node("xgpu-1"), node("a-gpu-1"), node("gpu-10"), node("gpu-1"), node("cpu")]).map((hit) => hit.name)).toEqual(["gpu-1", "gpu-10", "a-gpu-1", "xgpu-1"]);
  });
  it("says in which field, unless it is the name", () => {
    expect(hitsOf("a100", [node("gpu-1", "NVIDIA A100"), node("a100-2", "NVIDIA A100")]).map((hit) => [hit.name, hit.why])).toEqual([["a100-2", ""], ["gpu-1", "GPU Model NVIDIA A100"]]);
  });
  it("nothing for nothing, and no more than six of a kind", () => {
    const many = Array.from({ length: 9 }, (_, i) => node(`gpu-${i}`));
    expect(hitsOf("  ", many)).toEqual([]);
    expect(hitsOf("gpu", [...many, { kind: "users", fields: [["", "gpu-lover"]] }]).map((hit) => hit.kind)).toEqual([...Array<string>(6).fill("nodes"), "users"]);
  });
  it("marks what was asked for, whatever signs it has", () => {
    expect(marked("gpu-A100.1", "a100.")).toEqual(["gpu-", "A100.", "1"]);
    expect(marked("x", "(")).toEqual(["x", "", ""]);
  });
});

const hit = (more: Partial<SearchHit>): SearchHit => ({ kind: "pod", namespace: "a", name: "web-1", job: "", node: "gpu-1", gpuIndex: null, holdsGpu: false, field: "name", text: "web-1", piece: "web", ...more });
const there = (...hits: readonly SearchHit[]) => foundThere({ items: [...hits] }, { label: "label", name: "name" });

const found = (asked: string, locale: Locale) => hitsOf(asked, [...namedPages((key) => catalogues[locale][key]), ...namedCommands()]);

describe("what a word of the console finds", () => {
  it.each([
    ["pending", "/jobs?job_status=Pending"],
    ["等待", "/jobs?job_status=Pending"],
    ["NotReady", "/nodes?status=NotReady"],
    ["draining", "/devices?status=draining"],
    ["quota tree", "/quota/tree"],
    ["GPU devices", "/devices"],
    ["健康", "/health"],
    ["serving jobs", "/serving"],
    ["推理服务", "/serving"],
  ])("%s leads to %s, in both languages", (asked, to) => {
    for (const locale of ["en", "zh-CN"] as const) expect(found(asked, locale).map((hit) => hit.to)).toContain(to);
  });
  it.each([["dataset", "arena data list -A"], ["数据集", "arena data list -A"]])("%s, which has no page, is the command %s", (asked, copy) => {
    for (const locale of ["en", "zh-CN"] as const) expect(found(asked, locale).map((hit) => hit.copy)).toContain(copy);
  });
  it("every board is found by its title", () => {
    for (const board of BOARDS) expect(found(catalogues.en[board.title], "en").map((hit) => hit.to)).toContain(board.path);
  });
});

describe("what the server found", () => {
  it.each([
    [{ kind: "node", name: "gpu 1" }, "nodes", "/nodes/gpu%201"],
    [{ kind: "gpu", name: "gpu-1", gpuIndex: 3 }, "gpus", "/nodes/gpu-1"],
    [{ kind: "job", name: "bert", job: "mpijob/bert" }, "jobs", "/jobs/a/mpijob/bert"],
    [{ holdsGpu: true, job: "mpijob/bert" }, "holders", "/gpus?q=web-1&open=a%2Fweb-1"],
    [{ job: "mpijob/bert" }, "pods", "/jobs/a/mpijob/bert"],
  ] as const)("%j leads on", (more, kind, to) => {
    expect(there(hit(more))[0]).toMatchObject({ kind, to });
  });
  it("is a command where it has no page, and none for a name that is a flag", () => {
    expect(there(hit({ name: "it's" }))[0]).toMatchObject({ kind: "pods", copy: `kubectl -n a describe pod 'it'\\''s'` });
    expect(there(hit({ name: "--all" }))[0]?.copy).toBeUndefined();
  });
  it("says its field, and only what bears the text as it stands now", () => {
    const found = there(hit({ field: "label", text: "app=Web" }), hit({ kind: "gpu", name: "n", node: "n", gpuIndex: 0, field: "uuid", text: "GPU-77-web" }), hit({ field: "uid", text: "0f-web" }));
    expect(hitsOf("0f-web", found).map((each) => each.why)).toEqual(["UID 0f-web"]);
    expect(hitsOf("app=w", found).map((each) => each.why)).toEqual(["label app=Web"]);
    expect(hitsOf("77-w", found).map((each) => [each.name, each.why])).toEqual([["n GPU 0", "UUID GPU-77-web"]]);
    expect(hitsOf("other", found)).toEqual([]);
  });
  it("is one thing with what the list found, by the fields of both", () => {
    const list = node("gpu-1", "NVIDIA A100");
    const both = joined([list, ...there(hit({ kind: "node", name: "gpu-1", field: "label", text: "zone=b" })), node("gpu-2")]);
    expect(both.map((each) => each.to)).toEqual(["/nodes/gpu-1", "/nodes/gpu-2"]);
    expect(hitsOf("zone=b", both)).toMatchObject([{ name: "gpu-1", why: "label zone=b", isCounted: true }]);
    expect(hitsOf("a100", both)).toHaveLength(1);
  });
  it("is known again by the same key, whatever comes before it, and no two share one", () => {
    const things = [...there(hit({ job: "mpijob/bert" }), hit({ name: "web-2", job: "mpijob/bert" }), hit({ namespace: "b" })), node("gpu-1")];
    expect(new Set(things.map(keyOf)).size).toBe(4);
    expect(hitsOf("gpu-1", things).map(keyOf)).toEqual([keyOf(node("gpu-1"))]);
  });
});
