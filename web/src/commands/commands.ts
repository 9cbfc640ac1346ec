// Which commands say the same as what is on screen? One place for all of them; every word is quoted as a shell needs it.
import type { Start } from "../api/types";

export type CommandTable = "nodes" | "devices" | "jobs" | "holders" | "groups" | "quota" | "waiting";

/** What an empty cluster teaches: a whole line that runs. */
export const FIRST_JOB = "arena submit pytorchjob --name=first --gpus=1 --workers=1 --image=pytorch/pytorch:latest nvidia-smi";

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

/** What an address says of a filter. */
const saidOf = (params: URLSearchParams, name: string): readonly string[] => params.getAll(name).filter(isWord);

const only = (params: URLSearchParams, name: string): string | null => {
  const values = saidOf(params, name);
  return values.length === 1 ? (values[0] ?? null) : null;
};

/** The address of the API that gives these very rows. */
export function apiCommand(origin: string, path: string, params: URLSearchParams): string {
  const query = params.toString();
  return `curl -s ${quoted(`${origin}${path}${query ? `?${query}` : ""}`)}`;
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
    case "waiting":
      return ["fairlead quota plan"];
    default:
      return ["fairlead quota tree", "kubectl -n kube-system get elasticquotatree elasticquotatree -o yaml"];
  }
}
