// What was typed into the form of a new job or cron, and the body that is sent for it.
import type { JobFlag, JobForm, JobSubmission } from "../../api/types";

export type FlagValue = string | boolean;

/** `flags`: as typed; of a flag that may come several times, one value in each line. */
export interface Draft {
  readonly type: string;
  readonly namespace: string;
  readonly name: string;
  readonly command: string;
  readonly flags: Readonly<Record<string, FlagValue>>;
  /** The version of a serving job until another is typed: the time when the form was opened. */
  readonly version: string;
}

const two = (n: number) => String(n).padStart(2, "0");

/** As `arena serve` makes it: `202601051030`. */
export function versionOf(at: Date): string {
  return `${at.getFullYear()}${[at.getMonth() + 1, at.getDate(), at.getHours(), at.getMinutes()].map(two).join("")}`;
}

export type Section = "main" | "schedule" | "ports" | "size" | "data" | "place" | "more";

/** In the order of the form. What is in no section is among the rare flags, in the order of the command's help. */
const OF: Readonly<Record<Exclude<Section, "more">, readonly string[]>> = {
  main: ["image", "task-images", "main-class", "jar", "version", "model-name", "model-path", "model-repository", "model-format", "storage-uri"],
  schedule: ["schedule", "concurrency-policy", "deadline", "history-limit"],
  size: [
    "workers",
    "worker-replicas",
    "replicas",
    "min-replicas",
    "max-replicas",
    "task-replicas",
    "gpus",
    "worker-gpu",
    "task-gpus",
    "cpu",
    "worker-cpu",
    "task-cpu",
    "executor-cpu-request",
    "memory",
    "worker-memory",
    "task-memory",
    "executor-memory-request",
    "gpumemory",
    "ps",
    "ps-gpus",
    "ps-cpu",
    "ps-memory",
    "chief",
    "chief-cpu",
    "chief-memory",
    "evaluator",
    "evaluator-cpu",
    "evaluator-memory",
    "head-gpu",
    "head-cpu",
    "head-memory",
    "driver-cpu-request",
    "driver-memory-request",
    "min-workers",
    "max-workers",
    "min-available",
  ],
  ports: ["port", "restful-port", "http-port", "grpc-port", "metrics-port", "expose-service"],
  data: ["env", "working-dir", "data", "temp-dir", "sync-mode", "sync-source", "tensorboard", "logdir"],
  place: ["priority", "queue", "gang", "selector", "toleration", "running-timeout", "ttl-after-finished", "suspend", "retry", "label", "annotation"],
};
const NAMED: ReadonlySet<string> = new Set(Object.values(OF).flat());
/** Of a training job it is a rare flag. */
const OF_SERVING: ReadonlySet<string> = new Set(["model-name"]);
const isNamed = (name: string, form: JobForm): boolean => NAMED.has(name) && (form.family === "serve" || !OF_SERVING.has(name));

export function flagsOf(section: Section, form: JobForm): readonly JobFlag[] {
  if (section === "more") return form.flags.filter(({ name }) => !isNamed(name, form));
  return OF[section].flatMap((name) => form.flags.filter((flag) => flag.name === name && isNamed(name, form)));
}

/** The value of a flag as the form shows it. */
export function valueOf(draft: Draft, flag: JobFlag): FlagValue {
  const typed = draft.flags[flag.name];
  if (typed !== undefined) return typed;
  if (flag.name === "version") return draft.version;
  return flag.kind === "truth" ? flag.standard === "true" : flag.kind === "many" ? "" : flag.standard;
}

/** What is sent: flags of this kind that differ from their standard. What another kind took stays typed, and is not sent. */
export function submissionOf(draft: Draft, form: JobForm): JobSubmission {
  const flags: Record<string, boolean | string | string[]> = {};
  for (const flag of form.flags) {
    const value = valueOf(draft, flag);
    if (flag.kind === "many") {
      const lines = String(value)
        .split("\n")
        .map((line) => line.trim())
        .filter(Boolean);
      if (lines.length > 0) flags[flag.name] = lines;
    } else if (flag.kind === "truth") {
      if (value !== (flag.standard === "true")) flags[flag.name] = value;
    } else if (value !== flag.standard) flags[flag.name] = value;
  }
  return { type: draft.type, namespace: draft.namespace, name: draft.name.trim(), command: draft.command, flags };
}

/** The draft of a body. `at`: now. */
export function draftOf(body: JobSubmission, at: Date): Draft {
  const flags = Object.entries(body.flags ?? {}).map(([name, value]) => [name, Array.isArray(value) ? value.join("\n") : (value as FlagValue)] as const);
  return { type: body.type, namespace: body.namespace, name: body.name, command: body.command ?? "", flags: Object.fromEntries(flags), version: versionOf(at) };
}
