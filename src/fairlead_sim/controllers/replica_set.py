"""The ReplicaSet controller: adopts or creates pods, and deletes the least valuable."""

from __future__ import annotations

from collections import Counter
from typing import Any

from fairlead_sim.controllers.plan import (
    Plan,
    View,
    claim,
    generated_pod,
    is_active,
    is_available,
    is_going,
    ready_since,
    restarts_of,
    wake_when_available,
)
from fairlead_sim.objects.conditions import is_true, phase_of
from fairlead_sim.objects.pod_counts import BURST
from fairlead_sim.schema.go_number import whole_or_none
from fairlead_sim.schema.selector import selects

Object = dict[str, Any]

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"


def reconcile(obj: Object, view: View) -> Plan:
    plan = Plan()
    pods = claim(obj, "Pod", view, plan)
    active = [pod for pod in pods if is_active(pod)]
    missing = int(obj["spec"].get("replicas", 1)) - len(active)
    for name in view.names_below(obj, min(missing, BURST)):
        plan.create.append(generated_pod(obj["spec"]["template"], obj, name))
        plan.normal("SuccessfulCreate", f"Created pod: {name}")
    for pod in least_valuable(active)[:-missing] if missing < 0 else ():
        plan.delete.append(pod)
        plan.normal("SuccessfulDelete", f"Deleted pod: {pod['metadata']['name']}")
    plan.status = _status(obj, active, sum(is_going(pod) for pod in pods), view)
    wake_when_available(active, obj, view, plan)
    return plan


_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}


def least_valuable(pods: list[Object]) -> list[Object]:
    """Unbound before bound, pending before running, not ready before ready, cheaper ones, those on
    crowded nodes, the younger ones.
    """
    crowd = Counter(pod["spec"].get("nodeName", "") for pod in pods)

    def value(item: tuple[int, Object]) -> tuple[Any, ...]:
        number, pod = item
        ready = is_true(pod, "Ready")
        return (
            bool(pod["spec"].get("nodeName")),
            _PHASES.get(phase_of(pod), 1),
            ready,
            _deletion_cost(pod),
            -crowd[pod["spec"].get("nodeName", "")],
            -(ready_since(pod) or 0.0),
            -restarts_of(pod),
            -number,
        )

    return [pod for _, pod in sorted(enumerate(pods), key=value)]


def _deletion_cost(pod: Object) -> int:
    text = (pod["metadata"].get("annotations") or {}).get(DELETION_COST, "0")
    return whole_or_none(text) or 0


def _status(obj: Object, active: list[Object], going: int, view: View) -> Object:
    labels = (obj["spec"]["template"].get("metadata") or {}).get("labels") or {}
    is_labelled = selects({"matchLabels": labels})
    counts = {
        "fullyLabeledReplicas": sum(is_labelled(pod) for pod in active),
        "readyReplicas": sum(is_true(pod, "Ready") for pod in active),
        "availableReplicas": sum(is_available(pod, obj, view.now) for pod in active),
    }
    return _rendered(len(active), obj["metadata"].get("generation", 1), counts, going)


def settled_status(count: int) -> Object:
    """The status of a new set whose pods are all there and have long been available."""
    return _rendered(
        count,
        1,
        dict.fromkeys(("fullyLabeledReplicas", "readyReplicas", "availableReplicas"), count),
        0,
    )


def _rendered(replicas: int, generation: int, counts: dict[str, int], going: int) -> Object:
    shown = {key: value for key, value in counts.items() if value}
    return {
        "replicas": replicas,
        "observedGeneration": generation,
        **shown,
        "terminatingReplicas": going,
    }
