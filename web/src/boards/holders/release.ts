// How is a card given back? The command for whoever made the pod.
import type { Holder } from "../../api/types";

type Held = Pick<Holder, "namespace" | "name" | "ownerKind" | "owner" | "job">;

/** Deleting a pod helps nothing where its owner makes it anew: there the owner is told. */
export function releaseCommand({ namespace, name, ownerKind, owner, job }: Held): string {
  if (job) {
    const [type, jobName] = job.split("/");
    return `arena delete ${jobName} --type=${type} -n ${namespace}`;
  }
  if (ownerKind === "Deployment" || ownerKind === "StatefulSet" || ownerKind === "ReplicaSet") return `kubectl -n ${namespace} scale ${ownerKind.toLowerCase()}/${owner} --replicas=0`;
  if (owner) return `kubectl -n ${namespace} delete ${ownerKind.toLowerCase()} ${owner}`;
  return `kubectl -n ${namespace} delete pod ${name}`;
}
