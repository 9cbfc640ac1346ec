import { afterEach, describe, expect, it, vi } from "vitest";
import { EVERYTHING, movedTopics, openStream, topicOf } from "../src/api/hints";
import { BOARDS, boardAbove } from "../src/app/boards";
import { clusterClock } from "../src/app/clock";
import { type KeyState, readKey } from "../src/app/keyboard";
import { asQuestion, found, NO_CHANGES, typed, unfolded } from "../src/boards/quota/changes";
import { isNothing, minText, quotaBar, quotaLines, shortName, userLines } from "../src/boards/quota/rows";
import type { QuotaRow, QuotaTreeRow } from "../src/api/types";

const press = (key: string, more: Partial<{ typing: boolean; modified: boolean }> = {}) => ({ key, typing: false, modified: false, ...more });
const idle: KeyState = { goSince: null };

describe("keys", () => {
  it("g and a letter within a second lead to a board", () => {
    const [waiting] = readKey(idle, press("g"), 0);
    expect(readKey(waiting, press("j"), 900)[1]).toEqual({ kind: "board", key: "j" });
    expect(readKey(waiting, press("j"), 1500)[1]).toEqual({ kind: "row", step: 1 });
    expect(readKey(waiting, press("o"), 1500)[1]).toBeNull();
  });
  it("g and its letter lead to each board of the menu, and no letter to two", () => {
    const [waiting] = readKey(idle, press("g"), 0);
    for (const board of BOARDS) expect(readKey(waiting, press(board.key), 100)[1], board.path).toEqual({ kind: "board", key: board.key });
    expect(new Set(BOARDS.map((board) => board.key)).size).toBe(BOARDS.length);
  });
  it("Esc means back; from a detail page that is its board", () => {
    expect(readKey(idle, press("Escape"), 0)[1]).toEqual({ kind: "back" });
    expect(readKey(idle, press("Escape", { typing: true }), 0)[1]).toBeNull();
    expect(["/nodes/gpu-1", "/jobs/team-a/mpijob/x", "/nodes", "/jobs", "/"].map(boardAbove)).toEqual(["/nodes", "/jobs", null, null, null]);
  });
  it("typing is typing", () => {
    expect(readKey(idle, press("/", { typing: true }), 0)[1]).toBeNull();
    expect(readKey(idle, press("j", { modified: true }), 0)[1]).toBeNull();
  });
});

describe("hints", () => {
  it("only a topic is a hint", () => {
    expect(topicOf('{"topic":"jobs","version":"185"}')).toBe("jobs");
    expect(topicOf("{")).toBeNull();
    expect(topicOf('{"topic":7}')).toBeNull();
  });
  it("polling finds what moved, and nothing the first time", () => {
    expect(movedTopics(null, { jobs: "1" })).toEqual([]);
    expect(movedTopics({ jobs: "1", nodes: "1" }, { jobs: "2", nodes: "1", quota: "1" })).toEqual(["jobs", "quota"]);
  });
});

class FakeStream extends EventTarget {
  static readonly CLOSED = 2;
  static opened: FakeStream[] = [];
  readyState = 0;
  constructor(readonly url: string) {
    super();
    FakeStream.opened.push(this);
  }
  close(): void {
    this.readyState = FakeStream.CLOSED;
  }
}

describe("a stream that breaks", () => {
  afterEach(() => vi.unstubAllGlobals());
  it("has everything asked again at once, once more when it does not come back, and when it does", () => {
    vi.stubGlobal("EventSource", FakeStream);
    const told: string[] = [];
    const close = openStream((topic) => told.push(topic));
    const stream = FakeStream.opened.at(-1) as FakeStream;
    stream.dispatchEvent(new Event("open"));
    expect(told).toEqual([]);
    stream.dispatchEvent(new Event("error"));
    expect(told).toEqual([EVERYTHING]);
    for (let i = 0; i < 3; i += 1) stream.dispatchEvent(new Event("error"));
    expect(told).toEqual([EVERYTHING, EVERYTHING]);
    stream.dispatchEvent(new Event("open"));
    expect(told).toEqual([EVERYTHING, EVERYTHING, EVERYTHING]);
    close();
  });
});

describe("the cluster's clock", () => {
  it("runs at its own speed from where it was read", () => {
    let local = 1000;
    const clock = clusterClock(50_000, 60, 1000, () => local);
    expect(clock.now()).toBe(50_000);
    local = 2000;
    expect(clock.now()).toBe(110_000);
  });
});

const row = (more: Partial<QuotaRow>): QuotaRow => ({ name: "a", path: "root.a", parent: "root", depth: 1, isLeaf: true, namespaces: [], resource: "cpu", unit: "cores", max: 20, min: 10, minWritten: 10, overMax: 0, used: 0, requested: 0, borrowed: 0, lent: 0, lost: 0, waitingPods: 0, waitingJobs: 0, claimed: 0, byNamespace: [], byUser: [], ...more });

describe("quota", () => {
  it("used fills up to the guarantee, the rest is borrowed, waiting comes after", () => {
    expect(quotaBar(row({ used: 15, requested: 18 }))).toEqual({ within: 0.5, borrowed: 0.25, waiting: expect.closeTo(0.15), min: 0.5, open: false });
    expect(quotaBar(row({ used: 4, requested: 4 }))).toMatchObject({ within: 0.2, borrowed: 0, waiting: 0 });
  });
  it("without a limit the bar is open and still has a scale", () => {
    const bar = quotaBar(row({ max: null, used: 8, requested: 8 }));
    expect([bar.open, bar.min, bar.within]).toEqual([true, 0.8, 0.64]);
    expect(quotaBar(row({ max: null, min: 0 }))).toMatchObject({ within: 0, min: 0 });
    expect(quotaBar(row({ max: 0, min: 0 }))).toMatchObject({ within: 0, min: 0 });
  });
  it("a leaf with several namespaces shows each under its total", () => {
    const two = row({ used: 6, byNamespace: [{ namespace: "x", used: 4 }, { namespace: "y", used: 2 }] });
    const lines = quotaLines([two, row({ path: "root.b", byNamespace: [{ namespace: "z", used: 0 }] }), row({ resource: "memory" })], "cpu");
    expect(lines.map((l) => [l.kind, l.namespace, l.used])).toEqual([["leaf", null, 6], ["namespace", "x", 4], ["namespace", "y", 2], ["leaf", null, 0]]);
  });
  it("users are shown once per leaf, with every resource that they use", () => {
    const bob = [{ user: "bob", used: 4 }, { user: null, used: 2 }];
    const lines = userLines([row({ byUser: bob }), row({ resource: "memory", byUser: [{ user: "bob", used: 9 }] }), row({ path: "root", isLeaf: false, byUser: [] })]);
    expect(lines.map((l) => [l.leaf, l.user, ...l.used])).toEqual([["a", "bob", ["cpu", 4], ["memory", 9]], ["a", null, ["cpu", 2]]]);
  });
  it("a table of zeros has nothing to say; a limit, a guarantee or one that waits has", () => {
    const nothing = { min: 0, max: null };
    const lines = (...more: Partial<QuotaRow>[]) => quotaLines(more.map((each) => row({ ...nothing, ...each })), "cpu");
    expect(isNothing(lines({}, {}))).toBe(true);
    expect([{ min: 1 }, { max: 4 }, { used: 1 }, { requested: 1 }, { waitingPods: 1 }].map((each) => isNothing(lines({}, each)))).toEqual([false, false, false, false, false]);
    expect(isNothing([])).toBe(false);
  });
  it("a min that counts as less than is written is shown with both", () => {
    expect([minText("count", 10, 12), minText("count", 12, 12), minText("count", 0, 3)]).toEqual(["10 / 12", "12", "0 / 3"]);
  });
  it("a full path is shown by its last part", () => {
    expect(shortName({ name: "root.a.1", parent: "root.a" })).toBe("1");
    expect(shortName({ name: "team", parent: "root" })).toBe("team");
    expect(shortName({ name: "root", parent: "" })).toBe("root");
  });
});

const cpu = { resource: "cpu", unit: "cores", min: 10, max: null, minCounted: 10, overMax: 0, used: 0, minText: "10", maxText: "", waitingPods: 0 };
const treeRow = (name: string, parent: string, namespaces: string[] = []): QuotaTreeRow => ({ name, shortName: name, path: name, parent, depth: 0, isLeaf: true, namespaces, attributes: {}, bounds: [cpu], waitingPods: 0 });
const at = (name: string, depth: number): QuotaTreeRow => ({ ...treeRow(name, ""), depth });

describe("what if", () => {
  it("asks min and max of a cell together, and nothing of a cell that says what the tree says", () => {
    const once = typed(typed(NO_CHANGES, "a", cpu, "min", " 12 "), "a", cpu, "max", "20");
    expect(asQuestion(once)).toEqual([{ node: "a", resource: "cpu", min: "12", max: "20" }]);
    expect(asQuestion(typed(once, "a", cpu, "max", ""))).toEqual([{ node: "a", resource: "cpu", min: "12", max: null }]);
    expect(asQuestion(typed(NO_CHANGES, "a", cpu, "min", ""))).toEqual([{ node: "a", resource: "cpu", min: "", max: null }]);
  });
  it("what is below a folded node is not there, what comes after it is", () => {
    const rows = [at("root", 0), at("a", 1), at("a.1", 2), at("a.1.x", 3), at("b", 1), at("b.1", 2)];
    const seen = (...folded: string[]) => unfolded(rows, folded).map((row) => row.name);
    expect(seen()).toEqual(["root", "a", "a.1", "a.1.x", "b", "b.1"]);
    expect(seen("a")).toEqual(["root", "a", "b", "b.1"]);
    expect(seen("a", "a.1")).toEqual(["root", "a", "b", "b.1"]);
    expect(seen("root")).toEqual(["root"]);
    expect(seen("a.1.x", "gone")).toEqual(["root", "a", "a.1", "a.1.x", "b", "b.1"]);
  });
  it("a search keeps what is above a match", () => {
    const rows = [treeRow("root", ""), treeRow("a", "root"), treeRow("b", "root"), treeRow("b.1", "b", ["vision"])];
    expect(found(rows, "VISION").map((r) => r.name)).toEqual(["root", "b", "b.1"]);
    expect(found(rows, "none")).toEqual([]);
    expect(found(rows, " ")).toBe(rows);
  });
});
