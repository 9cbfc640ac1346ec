"""What does the StatefulSet controller do? Pods 0 … n-1 with stable names: each when the one before is ready, or all at once.

Old templates are not kept: a pod made anew always gets the newest one, whatever the partition. Volume claims are left out.
"""

from __future__ import annotations

from typing import Any

from fairlead.sim.conditions import is_true, phase_of
from fairlead.sim.plan import Plan, View, pod_from, template_hash
from fairlead.sim.pod_counts import BURST

Object = dict[str, Any]

REVISION_LABEL = "controller-revision-hash"


def reconcile(obj: Object, view: View) -> Plan:
    plan = Plan()
    pods = {ordinal: pod for pod in view.pods_of(obj) if (ordinal := _ordinal(obj, pod)) is not None}
    spec, revision = obj["spec"], f"{obj['metadata']['name']}-{template_hash(obj['spec']['template'])}"
    first = int((spec.get("ordinals") or {}).get("start", 0))
    wanted = range(first, first + int(spec.get("replicas", 1)))
    plan.status = _status(obj, list(pods.values()), len(wanted), revision)
    is_parallel = spec.get("podManagementPolicy") == "Parallel"
    if not _fill(obj, pods, wanted, revision, is_parallel, plan):
        return plan
    surplus = [pods[ordinal] for ordinal in sorted(pods, reverse=True) if ordinal not in wanted]
    for pod in surplus if is_parallel else surplus[:1]:
        _delete(obj, pod, plan)
    if not surplus:
        _update(obj, pods, wanted, revision, plan)
    return plan


def _ordinal(obj: Object, pod: Object) -> int | None:
    number = pod["metadata"]["name"].removeprefix(f"{obj['metadata']['name']}-")
    return int(number) if number.isdigit() else None


def _is_healthy(pod: Object) -> bool:
    return is_true(pod, "Ready") and "deletionTimestamp" not in pod["metadata"]


def _fill(obj: Object, pods: dict[int, Object], wanted: range, revision: str, is_parallel: bool, plan: Plan) -> bool:
    """Create what is missing and delete what is finished, in order; whether the controller may go on to shrink and update."""
    for ordinal in wanted:
        pod = pods.get(ordinal)
        if pod is None:
            plan.create.append(_pod(obj, ordinal, revision))
            name = obj["metadata"]["name"]
            plan.normal("SuccessfulCreate", f"create Pod {name}-{ordinal} in StatefulSet {name} successful")
            if len(plan.create) >= BURST:
                return False
        elif phase_of(pod) in ("Succeeded", "Failed"):
            _delete(obj, pod, plan)
        if not is_parallel and (pod is None or not _is_healthy(pod)):
            return False
    return True


def _update(obj: Object, pods: dict[int, Object], wanted: range, revision: str, plan: Plan) -> None:
    """Replace the highest pod of an old template, one at a time."""
    strategy = obj["spec"].get("updateStrategy") or {}
    if strategy.get("type") == "OnDelete":
        return
    partition = int((strategy.get("rollingUpdate") or {}).get("partition") or 0)
    for ordinal in reversed(wanted):
        pod = pods.get(ordinal)
        if ordinal < partition or pod is None:
            return
        if pod["metadata"]["labels"].get(REVISION_LABEL) != revision:
            _delete(obj, pod, plan)
            return
        if not _is_healthy(pod):
            return


def _delete(obj: Object, pod: Object, plan: Plan) -> None:
    if "deletionTimestamp" in pod["metadata"]:
        return
    plan.delete.append(pod)
    plan.normal("SuccessfulDelete", f"delete Pod {pod['metadata']['name']} in StatefulSet {obj['metadata']['name']} successful")


def _pod(obj: Object, ordinal: int, revision: str) -> Object:
    name = f"{obj['metadata']['name']}-{ordinal}"
    labels = {"apps.kubernetes.io/pod-index": str(ordinal), REVISION_LABEL: revision, "statefulset.kubernetes.io/pod-name": name}
    pod = pod_from(obj["spec"]["template"], obj, name, labels)
    domain = {"subdomain": obj["spec"]["serviceName"]} if obj["spec"].get("serviceName") else {}
    return {**pod, "spec": {**pod["spec"], "hostname": name, **domain}}


def _status(obj: Object, pods: list[Object], wanted: int, revision: str) -> Object:
    ready = sum(is_true(pod, "Ready") for pod in pods)
    updated = sum(pod["metadata"]["labels"].get(REVISION_LABEL) == revision for pod in pods)
    before = (obj.get("status") or {}).get("currentRevision") or revision
    current = revision if updated == ready == len(pods) == wanted else before
    counts = {
        "readyReplicas": ready,
        "currentReplicas": sum(pod["metadata"]["labels"].get(REVISION_LABEL) == current for pod in pods),
        "updatedReplicas": updated,
    }
    fixed = {"availableReplicas": ready, "collisionCount": 0, "currentRevision": current, "updateRevision": revision}
    generation = obj["metadata"].get("generation", 1)
    return {"replicas": len(pods), "observedGeneration": generation, **fixed, **{key: value for key, value in counts.items() if value}}
