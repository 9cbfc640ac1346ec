// Where does a card's holder have its page?
import type { GpuRow } from "../api/types";

/** The page of a card's holder: its job, else the pod among the holders; for several holders all on the node; without a holder the node. */
export function holderPage(node: string, gpu: Pick<GpuRow, "pods"> | undefined, isHeld: boolean): string {
  const pods = gpu?.pods ?? [];
  const jobs = new Set(pods.map((pod) => pod.job && `${pod.namespace}/${pod.job}`));
  const [job] = jobs;
  if (jobs.size === 1 && job) return `/jobs/${job.split("/").map(encodeURIComponent).join("/")}`;
  const names = new Set(pods.map((pod) => `${pod.namespace}/${pod.name}`));
  const [name] = names;
  if (names.size === 1 && name) return `/gpus?node=${encodeURIComponent(node)}&open=${encodeURIComponent(name)}`;
  return isHeld ? `/gpus?node=${encodeURIComponent(node)}` : `/nodes/${encodeURIComponent(node)}`;
}
