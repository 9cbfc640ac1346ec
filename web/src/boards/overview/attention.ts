// The page of an object in trouble: its own page; a pod without a job is among the holders.
import type { AttentionLine, AttentionObject } from "../../api/types";

export function pageOf(object: AttentionObject): string | null {
  switch (object.kind) {
    case "node":
    case "gpu":
      return `/nodes/${encodeURIComponent(object.name)}`;
    case "leaf":
      return `/quota?path=${encodeURIComponent(object.name)}`;
    default:
      if (object.job) return `/jobs/${[object.namespace, ...object.job.split("/")].map(encodeURIComponent).join("/")}`;
      return object.node ? `/gpus?q=${encodeURIComponent(object.name)}` : null;
  }
}

export const nameOf = (object: AttentionObject): string => (object.index === null ? [object.namespace, object.name].filter(Boolean).join("/") : `${object.name} GPU ${object.index}`);

/** The board with all objects of the line. */
export function allOf(line: AttentionLine): string {
  const kind = line.objects[0]?.kind;
  if (kind === "leaf") return "/quota";
  if (kind === "job") return "/jobs?job_status=Pending";
  if (kind === "pod") return line.kind === "pod-unschedulable" ? "/jobs?job_status=Pending" : "/gpus";
  return "/nodes";
}
