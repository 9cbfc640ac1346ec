// How is this job, in one sentence? From the job's own answer, as the boards' sentences come from theirs.
import type { JobDetail, JobRow, Sentence } from "../../api/types";
import { duration, memory } from "../../format/format";
import { shares } from "./columns";

const CODES: Readonly<Record<string, string>> = { Running: "job-running", Pending: "job-pending", Succeeded: "job-succeeded", Failed: "job-failed", Deleted: "job-deleted" };

/** Whether an instance of it can have left a sample: none has where the job never began and none runs. */
export const hasRun = ({ startedAt, instances: i }: JobRow): boolean => startedAt !== null || i.running + i.unknown + i.succeeded + i.failed > 0;

/** Whether all its events were read; otherwise a warning of the answer has the reason. */
export const areEventsKnown = ({ warnings }: Pick<JobDetail, "warnings">): boolean => !warnings.some((each) => each.source === "events");

export function jobSentence(job: JobRow): Sentence {
  const { running, desired, failed, unknown } = job.instances;
  const held = job.status === "Running" ? (job.heldSeconds ?? job.durationSeconds) : job.durationSeconds;
  const values = { running, desired, failed, unknown, held: job.gpusAllocated, asked: job.gpusRequested, memory: memory(job.gpuMemoryRequestedMiB), duration: duration(held) };
  if (job.status === "Running" && unknown > 0) return { code: "job-silent", values, text: `${job.status} · ${job.state}` };
  const code = CODES[job.status];
  return { code: code ? `${code}${shares(job) ? "-share" : ""}` : "", values, text: `${job.status} · ${job.state}` };
}
