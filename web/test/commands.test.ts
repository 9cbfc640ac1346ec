import { describe, expect, it } from "vitest";
import { releaseCommand } from "../src/boards/holders/release";
import { apiCommand, type CommandTable, FIRST_JOB, quoted, leftOut, startCommand, tableCommands } from "../src/commands/commands";
import { type CommandObject, objectAddress, objectCommands } from "../src/commands/objects";
import lines from "./lines.json" with { type: "json" };

const asked = (query: string) => new URLSearchParams(query);
const address = (of: CommandObject) => apiCommand("http://h", ...objectAddress(of));

describe("words for a shell", () => {
  it.each([
    ["gpu-1", "gpu-1"],
    ["a b", "'a b'"],
    ["$(reboot)", "'$(reboot)'"],
    ["it's", `'it'\\''s'`],
    ["", "''"],
    ["a;b&c|d", "'a;b&c|d'"],
  ])("%s", (word, safe) => {
    expect(quoted(word)).toBe(safe);
  });
});

describe("a table's commands", () => {
  it("tell which filters they leave out", () => {
    expect(leftOut("holders", asked("namespace=a&node=gpu-1&sort=name&page=2"))).toEqual([]);
    expect(leftOut("holders", asked("namespace=a&namespace=b&user=ann&leaf=root.a&q=x"))).toEqual(["namespace", "user", "leaf", "q"]);
    expect(leftOut("jobs", asked("job_status=Running&job_status=Failed&job_type=mpijob&user=ann"))).toEqual(["user"]);
    expect([leftOut("nodes", asked("gpu_node=a&gpu_node=b&status=Ready")), leftOut("waiting", asked("path=root.a"))]).toEqual([["status"], ["path"]]);
  });
  it("carry the filters that they know", () => {
    expect(tableCommands("jobs", asked("job_namespace=vision&job_type=mpijob&job_status=Running&q=x"))).toEqual(["arena list -n vision --type=mpijob --status=RUNNING"]);
    expect(tableCommands("jobs", asked("job_namespace=a&job_namespace=b"))).toEqual(["arena list -A"]);
    expect(tableCommands("nodes", asked("gpu_node=a&gpu_node=b"))).toEqual(["arena top node a b", "kubectl get nodes a b -o wide"]);
    expect(tableCommands("devices", asked("gpu_node=a&GPU=0&q=x"))).toEqual(["arena top node a -d", "kubectl inspect cgpu -d a"]);
    expect(tableCommands("holders", asked("namespace=a&node=gpu-1"))).toEqual(["kubectl get pods -n a -o wide --field-selector=spec.nodeName=gpu-1"]);
    expect(tableCommands("waiting", asked("path=root.a"))).toEqual(["fairlead quota plan"]);
    expect(tableCommands("quota", asked(""))[0]).toBe("fairlead quota tree");
  });
  it("take no word of an address for a flag", () => {
    expect(tableCommands("nodes", asked("gpu_node=--all"))).toEqual(["arena top node", "kubectl get nodes -o wide"]);
    expect(tableCommands("jobs", asked("job_namespace=-x"))).toEqual(["arena list -A"]);
  });
  it("never let a name out of its quotes", () => {
    expect(tableCommands("jobs", asked(`job_namespace=${encodeURIComponent("x'; rm -rf /")}`))).toEqual([`arena list -n 'x'\\''; rm -rf /'`]);
    expect(apiCommand("http://h", "/api/v1/jobs", asked("q=a b&sort=name"))).toBe("curl -s 'http://h/api/v1/jobs?q=a+b&sort=name'");
  });
});

type Held = Parameters<typeof releaseCommand>[0];
type Asked = { kind: "table"; table: CommandTable; query: string } | { kind: "first" } | ({ kind: "start" } & Parameters<typeof startCommand>[0]) | ({ kind: "release" } & Held) | CommandObject;

function linesOf(of: Asked): readonly string[] {
  if (of.kind === "table") return tableCommands(of.table, asked(of.query));
  if (of.kind === "first") return [FIRST_JOB];
  if (of.kind === "start") return [startCommand(of)];
  return of.kind === "release" ? [releaseCommand(of)] : objectCommands(of);
}

describe("an object's commands", () => {
  it.each(lines.map((each) => [JSON.stringify(each.of), each] as const))("%s", (_, each) => {
    expect(linesOf(each.of as Asked)).toEqual(each.lines);
  });
  it("stand beside the address of the API that gives the same", () => {
    expect(address({ kind: "node", name: "gpu/1 $x" })).toBe("curl -s http://h/nodes/gpu%2F1%20%24x");
    expect(address({ kind: "job", namespace: "a", type: "mpijob", name: "b'c" })).toBe(`curl -s 'http://h/jobs/a/mpijob/b'\\''c'`);
    expect(address({ kind: "holder", namespace: "a", name: "web-1" })).toBe("curl -s 'http://h/holders?namespace=a&q=web-1'");
    expect(address({ kind: "leaf", path: "root.a" })).toBe("curl -s 'http://h/quota/usage?path=root.a'");
  });
});
