// Commands that print what is on screen, in one place; every word is quoted as a shell needs it.
import type { Start } from "../api/types";

export type CommandTable = "nodes" | "devices" | "jobs" | "holders" | "groups" | "serving" | "datasets" | "components" | "operations" | "quota" | "waiting" | "users" | "userGroups" | "usage" | "idle" | "prices";

/** What an empty cluster teaches: a whole line that runs. */
export const FIRST_JOB = "arena submit pytorchjob --name=first --gpus=1 --workers=1 --image=pytorch/pytorch:latest nvidia-smi";

/** A first serving job. */
export const FIRST_SERVING = "arena serve custom --name=first --version=v1 --gpus=1 --restful-port=8000 --image=nginx";

/** The definition of a quota tree, as docs/how-to/quota-operations.md installs it, from a checkout of Fairlead. */
export const QUOTA_DEFINITION = "kubectl apply --server-side --force-conflicts -f deploy/quota-crd.yaml";

/** A first tree: 8 GPUs for two teams, each guaranteed 4 and free to use all. */
export const FIRST_TREE = `echo '{"apiVersion":"scheduling.sigs.k8s.io/v1beta1","kind":"ElasticQuotaTree","metadata":{"name":"elasticquotatree","namespace":"kube-system"},"spec":{"root":{"name":"root","min":{"nvidia.com/gpu":8},"max":{"nvidia.com/gpu":8},"children":[{"name":"root.team-a","namespaces":["team-a"],"min":{"nvidia.com/gpu":4},"max":{"nvidia.com/gpu":8}},{"name":"root.team-b","namespaces":["team-b"],"min":{"nvidia.com/gpu":4},"max":{"nvidia.com/gpu":8}}]}}}' | kubectl apply -f -`;

/** A job of one pod that takes what could start now. */
export function startCommand(start: Pick<Start, "namespace" | "resource" | "amount" | "selector">): string {
  const asks = start.resource === "nvidia.com/gpu" ? `--gpus=${start.amount}` : `--gpumemory=${start.amount}`;
  const selector = start.selector && quoted(`--selector=${start.selector}`);
  return line("arena submit pytorchjob --name=first", `-n ${quoted(start.namespace)}`, asks, "--workers=1", selector, "--image=pytorch/pytorch:latest nvidia-smi");
}

const PLAIN = /^[\w@%+=:,./-]+$/;

/** One word for a POSIX shell: what it would take apart or expand stands in single quotes. */
export const quoted = (word: string): string => (PLAIN.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`);

/** A word that a program would take for a flag is no name of anything. */
export const isWord = (word: string): boolean => word !== "" && !word.startsWith("-");

/** A command's words, those that are nothing left out. */
export const line = (...words: readonly (string | false | null | undefined)[]): string => words.filter((word) => typeof word === "string" && word !== "").join(" ");

/** The value of a filter in an address. */
const saidOf = (params: URLSearchParams, name: string): readonly string[] => params.getAll(name).filter(isWord);

const only = (params: URLSearchParams, name: string): string | null => {
  const values = saidOf(params, name);
  return values.length === 1 ? (values[0] ?? null) : null;
};

/** The period of a command about the ledger. */
const periodFlags = (params: URLSearchParams): readonly (string | null)[] =>
  ["period", "month", "from", "to"].map((name) => {
    const value = only(params, name);
    return value && `--${name}=${quoted(value)}`;
  });

/** The address of the API that gives these very rows. */
export function apiCommand(origin: string, path: string, params: URLSearchParams): string {
  const query = params.toString();
  return `curl -s ${quoted(`${origin}${path}${query ? `?${query}` : ""}`)}`;
}

/** Filters that a table's commands know; of some one value only. */
const KNOWN: Readonly<Record<CommandTable, { readonly any: readonly string[]; readonly one: readonly string[] }>> = {
  nodes: { any: ["gpu_node"], one: [] },
  devices: { any: ["gpu_node"], one: [] },
  jobs: { any: ["job_status"], one: ["job_namespace", "job_type"] },
  holders: { any: [], one: ["namespace", "node"] },
  groups: { any: [], one: ["namespace", "node"] },
  serving: { any: [], one: ["namespace", "type"] },
  datasets: { any: [], one: ["namespace"] },
  components: { any: [], one: [] },
  operations: { any: [], one: [] },
  waiting: { any: [], one: [] },
  quota: { any: [], one: [] },
  users: { any: [], one: [] },
  userGroups: { any: [], one: [] },
  usage: { any: [], one: ["period", "month", "from", "to"] },
  idle: { any: [], one: ["period", "month", "from", "to"] },
  prices: { any: [], one: [] },
};
/** Parameters that determine how rows are shown, not which. */
const NO_FILTERS: readonly string[] = ["sort", "page", "size", "fields", "format", "by"];

/** Filters of what is on screen that its commands leave out: they list more than is shown. */
export function leftOut(table: CommandTable, params: URLSearchParams): readonly string[] {
  const { any, one } = KNOWN[table];
  return [...new Set(params.keys())].filter((name) => !NO_FILTERS.includes(name) && !any.includes(name) && !(one.includes(name) && only(params, name) !== null));
}

/** Commands that ask a cluster the same. A filter that a command does not know is left out; the API's address knows all. */
export function tableCommands(table: CommandTable, params: URLSearchParams): readonly string[] {
  const namespace = only(params, "job_namespace") ?? only(params, "namespace");
  const of = namespace ? `-n ${quoted(namespace)}` : "-A";
  switch (table) {
    case "nodes": {
      const names = saidOf(params, "gpu_node").map(quoted).join(" ");
      return [line("arena top node", names), line("kubectl get nodes", names, "-o wide")];
    }
    case "devices": {
      const names = saidOf(params, "gpu_node").map(quoted).join(" ");
      return [line("arena top node", names, "-d"), line("kubectl inspect cgpu -d", names)];
    }
    case "jobs": {
      const type = only(params, "job_type");
      const status = saidOf(params, "job_status").map((word) => word.toUpperCase()).join(",");
      return [line("arena list", of, type && `--type=${quoted(type)}`, status && `--status=${quoted(status)}`)];
    }
    case "holders":
    case "groups": {
      const node = only(params, "node");
      return [line("kubectl get pods", of, "-o wide", node && `--field-selector=${quoted(`spec.nodeName=${node}`)}`)];
    }
    case "serving": {
      const type = only(params, "type");
      return [line("arena serve list", of, type && `--type=${quoted(type.toLowerCase())}`)];
    }
    case "datasets":
      return [line("fairlead dataset list", of)];
    case "components":
      return ["fairlead component list"];
    case "operations":
      return ["fairlead operation list"];
    case "users":
      return ["fairlead user list"];
    case "userGroups":
      return ["fairlead group list"];
    case "usage":
      return [line("fairlead usage", only(params, "by") && `--by=${quoted(only(params, "by") ?? "")}`, ...periodFlags(params))];
    case "idle":
      return [line("fairlead idle", ...periodFlags(params))];
    case "prices":
      return ["fairlead prices list"];
    case "waiting":
      return ["fairlead quota plan"];
    default:
      return ["fairlead quota tree", "kubectl -n kube-system get elasticquotatree elasticquotatree -o yaml"];
  }
}
