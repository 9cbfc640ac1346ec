"""What does the ReplicaSet controller do? As many active pods as asked: it creates the missing and deletes the youngest surplus."""

from __future__ import annotations

from typing import Any

from fairlead.sim.conditions import is_true, phase_of
from fairlead.sim.plan import Plan, View, is_active, pod_from
from fairlead.sim.pod_counts import BURST

Object = dict[str, Any]


def reconcile(obj: Object, view: View) -> Plan:
    plan = Plan()
    active = [pod for pod in view.pods_of(obj) if is_active(pod)]
    missing = int(obj["spec"].get("replicas", 1)) - len(active)
    for name in view.names_below(obj, min(missing, BURST)):
        plan.create.append(pod_from(obj["spec"]["template"], obj, name))
        plan.normal("SuccessfulCreate", f"Created pod: {name}")
    for pod in _least_valuable(active)[:-missing] if missing < 0 else ():
        plan.delete.append(pod)
        plan.normal("SuccessfulDelete", f"Deleted pod: {pod['metadata']['name']}")
    plan.status = _status(obj, active)
    return plan


def _least_valuable(pods: list[Object]) -> list[Object]:
    """Unbound before bound, not ready before ready, younger before older (creation order breaks ties)."""
    order = sorted(
        enumerate(pods),
        key=lambda item: (bool(item[1]["spec"].get("nodeName")), phase_of(item[1]) == "Running", is_true(item[1], "Ready"), -item[0]),
    )
    return [pod for _, pod in order]


def _status(obj: Object, active: list[Object]) -> Object:
    ready = sum(is_true(pod, "Ready") for pod in active)
    counts = {"fullyLabeledReplicas": len(active), "readyReplicas": ready, "availableReplicas": ready}
    generation = obj["metadata"].get("generation", 1)
    return {"replicas": len(active), "observedGeneration": generation, **{key: value for key, value in counts.items() if value}}
