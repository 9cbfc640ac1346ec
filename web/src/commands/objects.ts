// Commands that print the content of one object's page or panel. Exact: its namespace, its kind, its name, each quoted for a shell.
// A name that a program would take for a flag gets no command, only the API's address.
import { isWord, line, quoted } from "./commands";

export type CommandObject =
  | { readonly kind: "node"; readonly name: string; readonly shares?: boolean }
  | { readonly kind: "job"; readonly namespace: string; readonly type: string; readonly name: string; readonly live?: boolean; readonly waits?: boolean; readonly hasPods?: boolean }
  | { readonly kind: "holder"; readonly namespace: string; readonly name: string; readonly job?: string }
  | { readonly kind: "serving"; readonly namespace: string; readonly name: string; readonly version: string }
  | { readonly kind: "dataset" | "claim"; readonly namespace: string; readonly name: string }
  | { readonly kind: "component"; readonly id: string }
  | { readonly kind: "operation"; readonly id: string; readonly runs: boolean }
  | { readonly kind: "leaf"; readonly path: string }
  | { readonly kind: "unit"; readonly unit: string }
  | { readonly kind: "clock"; readonly isPaused: boolean }
  | { readonly kind: "pools"; readonly modes: readonly string[] }
  | { readonly kind: "map" | "tree" | "consumers" | "warnings" | "health" };

/** What `kubectl` calls the kind of a type of job: with its group, for `jobs` alone are Kubernetes' own. */
export const RESOURCES: Readonly<Record<string, string>> = {
  mpijob: "mpijobs.kubeflow.org",
  tfjob: "tfjobs.kubeflow.org",
  pytorchjob: "pytorchjobs.kubeflow.org",
  rayjob: "rayjobs.ray.io",
  volcanojob: "jobs.batch.volcano.sh",
  etjob: "trainingjobs.kai.alibabacloud.com",
  deepspeedjob: "trainingjobs.kai.alibabacloud.com",
  sparkjob: "sparkapplications.sparkoperator.k8s.io",
};

/** What `arena top node` calls the mode of a node: cards that are cut in parts are given away whole. */
const MODES: Readonly<Record<string, string>> = { exclusive: "exclusive", mig: "exclusive", topology: "topology", share: "share" };
const LAST_LINES = 100;

/** Nothing for an object that is gone: only the console remembers it. */
export function objectCommands(of: CommandObject): readonly string[] {
  switch (of.kind) {
    case "node":
      return ofNode(of.name, of.shares ?? false);
    case "job":
      return (of.live ?? true) ? ofJob(of) : [];
    case "holder":
      return [...jobOf(of), ...ofPod(of.namespace, of.name)];
    case "serving":
      return ofServing(of);
    case "dataset":
    case "claim":
      return ofData(of);
    case "component":
      return isWord(of.id) ? ["fairlead component list", line("fairlead component history", quoted(of.id))] : [];
    case "operation":
      return isWord(of.id) ? [line("fairlead operation", of.runs ? "follow" : "show", quoted(of.id))] : [];
    case "map":
      return ["arena top node -d"];
    case "consumers":
      return ["arena top job -A"];
    case "health":
      return ["kubectl get --raw=/readyz?verbose", "kubectl version"];
    case "warnings":
      return ["kubectl get events -A --field-selector=type=Warning"];
    case "leaf":
    case "tree":
      return ["fairlead quota tree", "kubectl -n kube-system get elasticquotatree elasticquotatree -o yaml"];
    case "unit":
      return isWord(of.unit) ? [line("fairlead quota why", quoted(of.unit))] : [];
    case "clock":
      return [`fairlead time ${of.isPaused ? "resume" : "pause"}`];
    default:
      return ["arena top node", ...new Set(of.modes.flatMap((mode) => MODES[mode] ?? []).map((mode) => `arena top node --gpu-mode=${mode}`))];
  }
}

function ofNode(name: string, shares: boolean): readonly string[] {
  if (!isWord(name)) return [];
  const word = quoted(name);
  return [line("arena top node", word, "-d"), ...(shares ? [line("fairlead inspect gpu", word, "-d")] : []), line("kubectl describe node", word), line("kubectl get node", word, "-o yaml")];
}

function ofJob({ namespace, type, name, waits, hasPods = true }: Extract<CommandObject, { kind: "job" }>): readonly string[] {
  if (!isWord(name) || !isWord(namespace)) return [];
  const job = line(quoted(name), `--type=${quoted(type)}`, "-n", quoted(namespace));
  const resource = RESOURCES[type];
  return [
    line("arena get", job, waits ? "--explain" : "--gpus --events"),
    // A waiting pod has no log yet, and logs of deleted pods are not kept.
    ...(waits || !hasPods ? [] : [line("arena logs", job, `--tail=${LAST_LINES}`)]),
    ...(resource ? [line("kubectl", "-n", quoted(namespace), "get", resource, quoted(name), "-o yaml")] : []),
  ];
}

function ofServing({ namespace, name, version }: Extract<CommandObject, { kind: "serving" }>): readonly string[] {
  if (!isWord(name) || !isWord(namespace)) return [];
  const job = line(quoted(name), isWord(version) && `--version=${quoted(version)}`, "-n", quoted(namespace));
  const labels = `servingName=${name}${isWord(version) ? `,servingVersion=${version}` : ""}`;
  return [line("arena serve get", job), line("arena serve logs", job, `--tail=${LAST_LINES}`), line("kubectl -n", quoted(namespace), "get deployments,services,pods -l", quoted(labels))];
}

function ofData({ kind, namespace, name }: { kind: "dataset" | "claim"; namespace: string; name: string }): readonly string[] {
  if (!isWord(name) || !isWord(namespace)) return [];
  const kubectl = line("kubectl -n", quoted(namespace), "describe");
  if (kind === "claim") return [line("fairlead dataset list -n", quoted(namespace)), line(kubectl, "pvc", quoted(name))];
  return [line("fairlead dataset show", quoted(name), "-n", quoted(namespace)), line(kubectl, "datasets.data.fluid.io", quoted(name))];
}

/** The job that a pod is of, `type/name`, as `arena` shows it. */
function jobOf({ namespace, job }: Extract<CommandObject, { kind: "holder" }>): readonly string[] {
  const [type = "", name = ""] = job?.split("/") ?? [];
  return ofJob({ kind: "job", namespace, type, name }).slice(0, 1);
}

function ofPod(namespace: string, name: string): readonly string[] {
  if (!isWord(name) || !isWord(namespace)) return [];
  const kubectl = line("kubectl", "-n", quoted(namespace));
  return [
    line("fairlead why", quoted(`${namespace}/${name}`)),
    line(kubectl, "describe pod", quoted(name)),
    line(kubectl, "logs", quoted(name), `--all-containers --tail=${LAST_LINES}`),
    line(kubectl, "get pod", quoted(name), "-o yaml"),
  ];
}

const address = (...parts: readonly string[]): string => `/${parts.map(encodeURIComponent).join("/")}`;

/** The API's route of the same object, and its query. */
export function objectAddress(of: CommandObject): readonly [path: string, params: URLSearchParams] {
  const none = new URLSearchParams();
  switch (of.kind) {
    case "node":
      return [address("nodes", of.name), none];
    case "job":
      return [address("jobs", of.namespace, of.type, of.name), none];
    case "holder":
      return ["/holders", new URLSearchParams({ namespace: of.namespace, q: of.name })];
    case "serving":
      return ["/serving", new URLSearchParams({ namespace: of.namespace, name: of.name })];
    case "dataset":
    case "claim":
      return [address("datasets", of.namespace, of.name), none];
    case "component":
      return [address("components", of.id), none];
    case "operation":
      return [address("operations", of.id), none];
    case "leaf":
      return ["/quota/usage", new URLSearchParams({ path: of.path })];
    case "tree":
      return ["/quota/tree", none];
    case "health":
      return ["/health", none];
    case "map":
      return ["/gpus/map", none];
    case "consumers":
      return ["/holders/groups", new URLSearchParams({ by: "namespace" })];
    case "unit":
      return ["/quota/waiting", new URLSearchParams({ q: of.unit })];
    case "clock":
      return ["/clock", none];
    default:
      return ["/overview", none];
  }
}
