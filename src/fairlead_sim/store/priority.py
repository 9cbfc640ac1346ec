"""The Priority admission writes a class's number and policy into a pod when it is created."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairlead_sim.objects.resources import PODS, PRIORITY_CLASSES
from fairlead_sim.schema.status import forbidden
from fairlead_sim.store.pod_account import service_account_name

if TYPE_CHECKING:
    from fairlead_sim.store.cluster import StoredCluster

Object = dict[str, Any]

SYSTEM_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
"""Classes that every cluster has."""


def with_priority(cluster: StoredCluster, pod: Object) -> Object:
    """The pod with its class's `priority` and `preemptionPolicy`.

    Raises 403 for an unknown class, or a number that is not the class's.
    """
    spec = pod.get("spec")
    if not isinstance(spec, dict):
        return pod
    name = spec.get("priorityClassName") or ""
    found = _named(cluster, name) if name else _default(cluster)
    if name and found is None:
        raise forbidden(
            PODS, service_account_name(pod), f"no PriorityClass with name {name} was found"
        )
    found = found or {}
    filled: Object = {
        "priority": int(found.get("value", 0)),
        "preemptionPolicy": found.get("preemptionPolicy") or "PreemptLowerPriority",
    }
    for key, what in (
        ("priority", "integer value of priority"),
        ("preemptionPolicy", "string value of PreemptionPolicy"),
    ):
        if spec.get(key) is not None and spec[key] != filled[key]:
            why = (
                f"priority admission controller computed {filled[key]} from the given "
                "PriorityClass name"
            )
            raise forbidden(
                PODS,
                service_account_name(pod),
                f"the {what} ({spec[key]}) must not be provided in pod spec; {why}",
            )
    if found:
        filled["priorityClassName"] = found["metadata"]["name"]
    return {**pod, "spec": {**spec, **filled}}


def _named(cluster: StoredCluster, name: str) -> Object | None:
    found = cluster.get(PRIORITY_CLASSES, None, name)
    if found is None and name in SYSTEM_CLASSES:
        return {"metadata": {"name": name}, "value": SYSTEM_CLASSES[name]}
    return found


def _default(cluster: StoredCluster) -> Object | None:
    """The class of pods that name none.

    Of several defaults the lowest, as the real admission chooses.
    """
    return min(
        (item for item in cluster.scan(PRIORITY_CLASSES) if item.get("globalDefault")),
        key=lambda item: item["value"],
        default=None,
    )
