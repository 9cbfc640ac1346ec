// An edit of the quota tree: what the server is sent, and what becomes of it when another administrator was faster.
import { describe, expect, test } from "vitest";
import type { QuotaTreePage } from "../src/api/types";
import { addChild, type Draft, draftOf, foundIn, ordersOf, rebased, removeNode, rename, restored, setAttributes, setBound, setResources, setSpaces, threeWay, yamlOf } from "../src/boards/quota/edit/draft";

const row = (name: string, parent: string, min: string, max: string, namespaces: string[] = [], attributes: Record<string, string> = {}) => ({
  name,
  parent,
  path: name,
  namespaces,
  attributes,
  bounds: [{ resource: "cpu", minText: min, maxText: max }],
});

const PAGE = {
  treeVersion: "uid.1",
  managed: ["cpu"],
  items: [row("root", "", "40", "40"), row("root.a", "root", "20", "40"), row("root.a.1", "root.a", "10", "", ["ns1"]), row("root.b", "root", "0", "40", ["ns2"])],
} as unknown as QuotaTreePage;

const named = (draft: Draft, name: string) => ordersOf(draft).find((each) => each.name === name);

describe("an edit of the quota tree", () => {
  test("sends no bound where there is none, and of the root all", () => {
    const draft = setBound(setResources(draftOf(PAGE), ["cpu", "memory"]), "root", "memory", "max", "4Gi");
    expect(named(draft, "root")).toEqual({ name: "root", parent: "", formerly: "root", min: { cpu: "40", memory: "" }, max: { cpu: "40", memory: "4Gi" }, namespaces: [], attributes: null });
    expect(named(draft, "root.a.1")).toEqual({ name: "root.a.1", parent: "root.a", formerly: "root.a.1", min: { cpu: "10" }, max: {}, namespaces: ["ns1"], attributes: null });
    expect(named(draft, "root.b")?.min).toEqual({});
  });

  test("renames what is below a node too, and remembers the former names", () => {
    const draft = rename(draftOf(PAGE), "root.a", "alpha");
    expect(ordersOf(draft).map((each) => [each.name, each.parent, each.formerly])).toEqual([
      ["root", "", "root"],
      ["root.alpha", "root", "root.a"],
      ["root.alpha.1", "root.alpha", "root.a.1"],
      ["root.b", "root", "root.b"],
    ]);
  });

  test("adds a child after its siblings, under a free name", () => {
    const { draft, id } = addChild(draftOf(PAGE), "root.a");
    const changed = setSpaces(draft, id, "x, y");
    expect(ordersOf(changed).map((each) => each.name)).toEqual(["root", "root.a", "root.a.1", "root.a.2", "root.b"]);
    expect(named(changed, "root.a.2")).toEqual({ name: "root.a.2", parent: "root.a", formerly: "", min: {}, max: {}, namespaces: ["x", "y"], attributes: null });
  });

  test("sends the attributes of a node only where they were changed, and loses no sign of them", () => {
    const stored = { "fairlead.io/user-cap": '{"cpu":"5"}', "a=b": "50 %; two\nlines" };
    const page = { ...PAGE, items: [...PAGE.items.slice(0, 3), row("root.b", "root", "0", "40", ["ns2"], stored)] } as unknown as QuotaTreePage;
    const draft = draftOf(page);
    expect(named(draft, "root.b")?.attributes).toBeNull();
    const line = draft.nodes.find((each) => each.name === "root.b")?.attributes ?? "";
    expect(line).not.toMatch(/[\n]/);
    const changed = setAttributes(draft, "root.b", `${line}; preempt-policy = Never`);
    expect(named(changed, "root.b")?.attributes).toEqual({ ...stored, "preempt-policy": "Never" });
    expect(named(setAttributes(draft, "root.b", " "), "root.b")?.attributes).toEqual({});
    expect(threeWay(draft, changed, draft)).toMatchObject([{ node: "root.b", cell: "attributes", clash: false }]);
    expect(named(rebased(draft, changed, { ...draft, version: "uid.2" }), "root.b")?.attributes).toEqual({ ...stored, "preempt-policy": "Never" });
    expect(yamlOf(changed)).toContain('preempt-policy: "Never"');
  });

  test("finds nodes with all that is above them", () => {
    expect(foundIn(draftOf(PAGE), "NS1").map((each) => each.name)).toEqual(["root", "root.a", "root.a.1"]);
  });

  test("shows what each of two changed, and takes mine over to the other tree", () => {
    const base = draftOf(PAGE);
    let mine = setBound(base, "root.a.1", "cpu", "min", "12");
    mine = setBound(mine, "root.b", "cpu", "max", "30");
    mine = addChild(mine, "root.a").draft;
    const theirs = { ...setSpaces(setBound(base, "root.b", "cpu", "max", "20"), "root.b", "ns2, ns3"), version: "uid.2" };
    const rows = threeWay(base, mine, theirs);
    expect(rows).toContainEqual({ node: "root.a.1", cell: "min.cpu", base: "10", mine: "12", theirs: "10", clash: false });
    expect(rows).toContainEqual({ node: "root.b", cell: "max.cpu", base: "40", mine: "30", theirs: "20", clash: true });
    expect(rows).toContainEqual({ node: "root.b", cell: "namespaces", base: "ns2", mine: "ns2", theirs: "ns2, ns3", clash: false });
    const both = rebased(base, mine, theirs);
    expect(both.version).toBe("uid.2");
    expect(named(both, "root.a.1")?.min).toEqual({ cpu: "12" });
    expect(named(both, "root.b")).toMatchObject({ max: { cpu: "30" }, namespaces: ["ns2", "ns3"] });
    expect(named(both, "root.a.2")).toMatchObject({ parent: "root.a", formerly: "" });
    expect(ordersOf(rebased(base, removeNode(base, "root.b"), theirs)).map((each) => each.name)).toEqual(["root", "root.a", "root.a.1"]);
  });

  test("restores a version as an edit of the tree as it is now", () => {
    const now = rename(draftOf(PAGE), "root.b", "c");
    const back = restored(ordersOf(draftOf(PAGE)), { ...now, nodes: now.nodes.map((each) => ({ ...each, formerly: each.name })) });
    expect(ordersOf(back).map((each) => [each.name, each.formerly])).toEqual([
      ["root", "root"],
      ["root.a", "root.a"],
      ["root.a.1", "root.a.1"],
      ["root.b", ""],
    ]);
  });

  test("is written as YAML", () => {
    expect(yamlOf(draftOf(PAGE))).toContain("      - name: root.a\n        min:\n          cpu: \"20\"\n        max:\n          cpu: \"40\"\n        children:\n          - name: root.a.1\n");
  });
});
