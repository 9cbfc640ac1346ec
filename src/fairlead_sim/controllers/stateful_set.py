"""The StatefulSet controller: pods 0 … n-1 with stable names.

Each starts when the one before is ready, or all at once.

Below the partition pods are made from the template that was current before. Volume claims are left
out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from fairlead_sim.controllers.controller_history import forget_revisions, sync_history, template_of
from fairlead_sim.controllers.plan import (
    Plan,
    View,
    claim,
    is_available,
    is_going,
    pod_from,
    wake_when_available,
)
from fairlead_sim.objects.conditions import is_true, phase_of, status_of
from fairlead_sim.objects.pod_counts import BURST

Object = dict[str, Any]

REVISION_LABEL = "controller-revision-hash"


@dataclass(slots=True)
class _Set:
    """One look at a StatefulSet: its pods by ordinal, the ordinals it wants, and the revisions it
    had and shall have.
    """

    obj: Object
    view: View
    plan: Plan
    pods: dict[int, Object]
    wanted: range
    current: Object
    update: Object

    @property
    def is_parallel(self) -> bool:
        return bool(self.obj["spec"].get("podManagementPolicy") == "Parallel")

    @property
    def partition(self) -> int:
        return int(
            ((self.obj["spec"].get("updateStrategy") or {}).get("rollingUpdate") or {}).get(
                "partition"
            )
            or 0
        )

    @property
    def is_on_delete(self) -> bool:
        return bool((self.obj["spec"].get("updateStrategy") or {}).get("type") == "OnDelete")

    def is_healthy(self, pod: Object) -> bool:
        return is_available(pod, self.obj, self.view.now) and not is_going(pod)


def reconcile(obj: Object, view: View) -> Plan:
    plan = Plan()
    named = {
        ordinal: pod
        for pod in claim(obj, "Pod", view, plan)
        if (ordinal := _ordinal(obj, pod)) is not None
    }
    revisions, update = sync_history(obj, view, plan)
    first = int((obj["spec"].get("ordinals") or {}).get("start", 0))
    wanted = range(first, first + int(obj["spec"].get("replicas", 1)))
    before = status_of(obj).get("currentRevision")
    current = next((item for item in revisions if item["metadata"]["name"] == before), update)
    look = _Set(obj, view, plan, named, wanted, current, update)
    plan.status = _status(look)
    if _fill(look) and _shrink(look) and not look.is_on_delete:
        _update(look)
    live = {item["metadata"]["name"] for item in (current, update)} | {
        _revision_of(pod) for pod in named.values()
    }
    forget_revisions(obj, revisions, live, plan)
    wake_when_available(list(named.values()), obj, view, plan)
    return plan


def _ordinal(obj: Object, pod: Object) -> int | None:
    number = pod["metadata"]["name"].removeprefix(f"{obj['metadata']['name']}-")
    return int(number) if number.isdigit() else None


def _revision_of(pod: Object) -> str:
    return str((pod["metadata"].get("labels") or {}).get(REVISION_LABEL, ""))


def _fill(look: _Set) -> bool:
    """Create what is missing and delete what is finished, in order; whether the controller may go
    on to shrink and update.
    """
    for ordinal in look.wanted:
        pod = look.pods.get(ordinal)
        if pod is None:
            look.plan.create.append(_pod(look, ordinal))
            name = look.obj["metadata"]["name"]
            look.plan.normal(
                "SuccessfulCreate",
                f"create Pod {name}-{ordinal} in StatefulSet {name} successful",
            )
            if len(look.plan.create) >= BURST:
                return False
        elif phase_of(pod) in ("Succeeded", "Failed"):
            _delete(look, pod)
            if not look.is_parallel:
                return False
        if not look.is_parallel and (pod is None or not look.is_healthy(pod)):
            return False
    return True


def _shrink(look: _Set) -> bool:
    """Delete the pods beyond the wanted ones, the highest first; whether there were none."""
    surplus = [
        look.pods[ordinal]
        for ordinal in sorted(look.pods, reverse=True)
        if ordinal not in look.wanted
    ]
    if look.is_parallel:
        for pod in surplus:
            _delete(look, pod)
        return True
    unhealthy = next((pod for pod in reversed(surplus) if not look.is_healthy(pod)), None)
    if (
        surplus
        and not is_going(surplus[0])
        and (look.is_healthy(surplus[0]) or surplus[0] is unhealthy)
    ):
        _delete(look, surplus[0])
    return not surplus


def _update(look: _Set) -> None:
    """Replace the highest pod of an old template, one at a time."""
    for ordinal in reversed(look.wanted):
        pod = look.pods.get(ordinal)
        if ordinal - look.wanted.start < look.partition or pod is None:
            return
        if _revision_of(pod) != look.update["metadata"]["name"] and not is_going(pod):
            _delete(look, pod)
            return
        if not look.is_healthy(pod):
            return


def _delete(look: _Set, pod: Object) -> None:
    if not is_going(pod):
        look.plan.delete.append(pod)
        message = (
            f"delete Pod {pod['metadata']['name']} in StatefulSet {look.obj['metadata']['name']} "
            "successful"
        )
        look.plan.normal("SuccessfulDelete", message)


def _pod(look: _Set, ordinal: int) -> Object:
    obj = look.obj
    name = f"{obj['metadata']['name']}-{ordinal}"
    is_old = not look.is_on_delete and ordinal - look.wanted.start < look.partition
    revision = look.current if is_old else look.update
    labels = {
        "apps.kubernetes.io/pod-index": str(ordinal),
        REVISION_LABEL: revision["metadata"]["name"],
        "statefulset.kubernetes.io/pod-name": name,
    }
    pod = pod_from(template_of(revision), obj, name, labels)
    domain = {"subdomain": obj["spec"]["serviceName"]} if obj["spec"].get("serviceName") else {}
    return {**pod, "spec": {**pod["spec"], "hostname": name, **domain}}


def _status(look: _Set) -> Object:
    pods, now = list(look.pods.values()), look.view.now
    staying = [pod for pod in pods if not is_going(pod)]
    count = len(look.wanted)
    ready = sum(is_true(pod, "Ready") for pod in pods)
    current, update = look.current["metadata"]["name"], look.update["metadata"]["name"]
    updated = _count(staying, update)
    if updated == ready == len(pods) == count and not look.is_on_delete:
        current = update
    counts = {
        "readyReplicas": ready,
        "currentReplicas": _count(staying, current),
        "updatedReplicas": updated,
    }
    available = sum(is_available(pod, look.obj, now) for pod in pods)
    fixed = {
        "availableReplicas": available,
        "collisionCount": 0,
        "currentRevision": current,
        "updateRevision": update,
    }
    generation = look.obj["metadata"].get("generation", 1)
    return {
        "replicas": len(pods),
        "observedGeneration": generation,
        **fixed,
        **{key: value for key, value in counts.items() if value},
    }


def _count(pods: Iterable[Object], revision: str) -> int:
    return sum(_revision_of(pod) == revision for pod in pods)
