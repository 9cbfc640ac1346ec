// How is a card released? The command depends on the owner of the pod.
import type { Holder } from "../../api/types";
import { quoted } from "../../commands/commands";

type Held = Pick<Holder, "namespace" | "name" | "ownerKind" | "owner" | "job">;

/** Deleting a pod does not help if its owner recreates it: then the command is for the owner. */
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
