import { describe, expect, it } from "vitest";
import { groupKey, idleOf, idleWord, within } from "../src/boards/holders/columns";
import { filtersOf, lineKey, linesOf, PODS_MAX, toggled, UNFOLDED_MAX } from "../src/boards/holders/lines";
import { releaseCommand } from "../src/boards/holders/release";
import { allOf, nameOf, pageOf } from "../src/boards/overview/attention";
import type { AttentionLine, Holder, HolderGroup } from "../src/api/types";

const pod = { namespace: "a", name: "web-1-x", ownerKind: "", owner: "", job: "" };
const group = (more: Partial<HolderGroup>) => ({ name: "", kind: "", namespace: "", job: "", pods: 1, gpus: 1, gpusIdle: 0, gpuHoursIdle: 0, gpuMemoryAllocatedMiB: null, gpuMemoryUsedMiB: null, gpuMemoryUsedOfMiB: null, heldSince: null, ...more });

describe("cards are given back by whoever made the pod", () => {
  it.each([
    [pod, "kubectl -n a delete pod web-1-x"],
    [{ ...pod, ownerKind: "Deployment", owner: "web" }, "kubectl -n a scale deployment/web --replicas=0"],
    [{ ...pod, ownerKind: "Job", owner: "once" }, "kubectl -n a delete job once"],
    [{ ...pod, name: "it's", ownerKind: "CronJob", owner: "nightly" }, `kubectl -n a delete job "$(kubectl -n a get pod 'it'\\''s' -o 'jsonpath={.metadata.ownerReferences[0].name}')"`],
    [{ ...pod, ownerKind: "MPIJob", owner: "bert", job: "mpijob/bert" }, "arena delete bert --type=mpijob -n a"],
    [{ ...pod, name: "x; reboot" }, "kubectl -n a delete pod 'x; reboot'"],
    [{ ...pod, ownerKind: "Note$(book)", owner: "it's" }, `kubectl -n a delete 'note$(book)' 'it'\\''s'`],
  ])("%#", (held, command) => {
    expect(releaseCommand(held)).toBe(command);
  });
});

describe("a group leads to its pods", () => {
  it("by the filters that made it", () => {
    expect(within("owner", group({ namespace: "a", kind: "Deployment", name: "web" }))).toBe("?namespace=a&kind=Deployment&owner=web");
    expect(within("owner", group({ namespace: "a", kind: "Pod", name: "alone" }))).toBe("?namespace=a&owner=Pod%2Falone");
    expect(within("user", group({ name: "li & co" }))).toBe("?user=li+%26+co");
    expect([within("user", group({})), within("leaf", group({}))]).toEqual(["?user=-", "?leaf=-"]);
    expect(groupKey(group({ namespace: "a", kind: "Pod", name: "x" }))).not.toBe(groupKey(group({ namespace: "b", kind: "Pod", name: "x" })));
  });
});

describe("idle time", () => {
  it.each([
    [null, "—"],
    [0, "holders.busy"],
    [1, "1s"],
    [7200, "2h"],
  ])("%s", (seconds, word) => {
    expect(idleWord(seconds, (key) => key)).toBe(word);
  });
});

const idleSaid = ([idleSeconds, gpusIdle]: readonly [number | null, number]) => idleOf({ idleSeconds, gpusIdle, gpus: 4 }, (key, values) => (values ? `${values["idle"]} of ${values["gpus"]}` : key));

it("of a pod that uses some of its cards it is said how many it does not use", () => {
  expect(([[0, 3], [0, 0], [null, 0]] as const).map(idleSaid)).toEqual(["3 of 4", "holders.busy", "—"]);
});

describe("a group unfolds in place", () => {
  const [a, b] = [group({ name: "ann", pods: 60 }), group({ name: "bob" })];
  const pods = Array.from({ length: 60 }, (_, i) => ({ namespace: "a", name: `w-${i}` }) as Holder);
  const kinds = (below: Parameters<typeof linesOf>[1]) => linesOf([a, b], below).map((line) => line.is);
  it("and shows its pods, no more than fifty, and where all of them are", () => {
    const lines = linesOf([a, b], new Map([[groupKey(a), { pods, total: 60 }]]));
    expect(lines.filter((line) => line.is === "pod")).toHaveLength(PODS_MAX);
    expect(lines.at(-2)).toEqual({ is: "all", group: a, shown: 50, total: 60 });
    expect(new Set(lines.map(lineKey)).size).toBe(lines.length);
    expect(kinds(new Map())).toEqual(["group", "group"]);
  });
  it("and says that its pods are awaited, or why they cannot be read, but keeps what it had", () => {
    const error = new Error("gone");
    expect(kinds(new Map([[groupKey(a), {}]]))).toEqual(["group", "wait", "group"]);
    expect(kinds(new Map([[groupKey(a), { error }]]))).toEqual(["group", "failed", "group"]);
    expect(kinds(new Map([[groupKey(a), { pods: pods.slice(0, 1), total: 1, error }]]))).toEqual(["group", "pod", "all", "group"]);
  });
  it("with the page's filters and its own, and not its order or page", () => {
    const asking = new URLSearchParams("status=Running&user=ann&user=bob&sort=-gpus&page=2&by=user");
    expect(String(filtersOf("user", a, asking, ["status", "user", "q"]))).toBe("status=Running&user=ann");
  });
  it("and the first of too many folds again", () => {
    const many = Array.from({ length: UNFOLDED_MAX }, (_, i) => `k${i}`);
    expect(toggled(many, "new", true)).toEqual([...many.slice(1), "new"]);
    expect(toggled(["x", "y"], "x", false)).toEqual(["y"]);
    expect(toggled(["x"], "x", true)).toEqual(["x"]);
  });
});

const thing = { kind: "pod", namespace: "a", name: "p/1", node: "n", job: "", index: null };
const lineOf = (kind: string, of: string) => ({ kind, objects: [{ ...thing, kind: of }] }) as unknown as AttentionLine;

describe("a thing in trouble", () => {
  it("leads to its own page", () => {
    expect(pageOf({ ...thing, kind: "node", name: "gpu 1" })).toBe("/nodes/gpu%201");
    expect(pageOf({ ...thing, kind: "leaf", name: "root.a" })).toBe("/quota?path=root.a");
    expect(pageOf({ ...thing, job: "mpijob/bert" })).toBe("/jobs/a/mpijob/bert");
    expect(pageOf(thing)).toBe("/gpus?q=p%2F1");
    expect(pageOf({ ...thing, node: "" })).toBeNull();
  });
  it("is named with its card", () => {
    expect(nameOf({ ...thing, kind: "gpu", namespace: "", name: "gpu-1", index: 0 })).toBe("gpu-1 GPU 0");
  });
  it("knows where the others stand", () => {
    expect([allOf(lineOf("node-silent", "node")), allOf(lineOf("pod-stuck", "pod")), allOf(lineOf("leaf-starved", "leaf"))]).toEqual(["/nodes", "/gpus", "/quota"]);
  });
});
