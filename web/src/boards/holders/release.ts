// How is a card given back? The command for whoever made the pod.
import type { Holder } from "../../api/types";
import { quoted } from "../../commands/commands";

type Held = Pick<Holder, "namespace" | "name" | "ownerKind" | "owner" | "job">;

/** Deleting a pod helps nothing where its owner makes it anew: there the owner is told. */
export function releaseCommand({ namespace, name, ownerKind, owner, job }: Held): string {
  const of = quoted(namespace);
  if (job) {
    const [type, jobName] = job.split("/");
    return `arena delete ${quoted(jobName ?? "")} --type=${quoted(type ?? "")} -n ${of}`;
  }
  if (ownerKind === "Deployment" || ownerKind === "StatefulSet" || ownerKind === "ReplicaSet") return `kubectl -n ${of} scale ${quoted(`${ownerKind.toLowerCase()}/${owner}`)} --replicas=0`;
  // Without its schedule the CronJob would be worth nothing: only today's Job goes.
  if (ownerKind === "CronJob") return `kubectl -n ${of} delete job "$(kubectl -n ${of} get pod ${quoted(name)} -o 'jsonpath={.metadata.ownerReferences[0].name}')"`;
  if (owner) return `kubectl -n ${of} delete ${quoted(ownerKind.toLowerCase())} ${quoted(owner)}`;
  return `kubectl -n ${of} delete pod ${quoted(name)}`;
}
