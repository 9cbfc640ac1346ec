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
}

export type Section = "main" | "schedule" | "size" | "data" | "place" | "more";

/** In the order of the form. What is in no section is among the rare flags, in the order of the command's help. */
const OF: Readonly<Record<Exclude<Section, "more">, readonly string[]>> = {
  main: ["image", "task-images", "main-class", "jar"],
  schedule: ["schedule", "concurrency-policy", "deadline", "history-limit"],
  size: [
    "workers",
    "worker-replicas",
    "replicas",
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
  data: ["env", "working-dir", "data", "sync-mode", "sync-source", "tensorboard", "logdir"],
  place: ["priority", "queue", "gang", "selector", "toleration", "running-timeout", "ttl-after-finished", "suspend", "retry", "label", "annotation"],
};
const NAMED: ReadonlySet<string> = new Set(Object.values(OF).flat());

export function flagsOf(section: Section, form: JobForm): readonly JobFlag[] {
  if (section === "more") return form.flags.filter(({ name }) => !NAMED.has(name));
  return OF[section].flatMap((name) => form.flags.filter((flag) => flag.name === name));
}

/** The value of a flag as the form shows it. */
export function valueOf(draft: Draft, flag: JobFlag): FlagValue {
  const typed = draft.flags[flag.name];
  if (typed !== undefined) return typed;
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

/** The draft of a body. */
export function draftOf(body: JobSubmission): Draft {
  const flags = Object.entries(body.flags ?? {}).map(([name, value]) => [name, Array.isArray(value) ? value.join("\n") : (value as FlagValue)] as const);
  return { type: body.type, namespace: body.namespace, name: body.name, command: body.command ?? "", flags: Object.fromEntries(flags) };
}
