"""Whether a node accepts one more pod: the kubelet's checks for pods that no scheduler has placed.

The order and the messages are the kubelet's (`lifecycle/predicate.go`, `devicemanager/manager.go`,
1.36.3): devices of plugins first, then pods, cpu, memory and the rest, then the pod's node selector
and affinity. Extended resources that the node does not have are not checked, nor are ports of the
host. Pods that a taint with the effect `NoExecute` keeps off are deleted before a kubelet looks
(`controllers/node_lifecycle`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from fairlead.model.resources import GPU_CORE, GPU_MEMORY, MIG_PREFIX, NVIDIA_GPU, PODS, Amounts
from fairlead_sim.objects.conditions import status_of
from fairlead_sim.scheduler.affinity import suits_node
from fairlead_sim.scheduler.needs import amounts_of, pod_needs

Object = dict[str, Any]

UNEXPECTED: Final = "UnexpectedAdmissionError"
_DEVICES: Final = (GPU_MEMORY, GPU_CORE)
"""Counted here; whole cards and instances are counted where they are given out (`allocation`)."""
_FIRST: Final = (PODS, "cpu", "memory", "ephemeral-storage")


class Rejection(NamedTuple):
    reason: str
    message: str


def unsuited(pod: Object, node: Object) -> Rejection | None:
    """Why the pod's node selector or affinity does not allow the node; None where they do.

    >>> node = {"metadata": {"name": "n", "labels": {"disk": "ssd"}}}
    >>> unsuited({"spec": {"nodeSelector": {"disk": "hdd"}}}, node).message
    "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"
    """
    metadata = node["metadata"]
    if suits_node(pod["spec"], metadata["name"], metadata.get("labels") or {}):
        return None
    return Rejection(
        "NodeAffinity",
        "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector",
    )


class NodeSums:
    """What the pods admitted to a node request together, without those that are gone or ended."""

    def __init__(self, is_alive: Callable[[str], bool]) -> None:
        self._is_alive = is_alive
        self._admitted: dict[str, dict[str, Amounts]] = {}

    def admit(self, pod: Object, node: str) -> None:
        self._admitted.setdefault(node, {})[pod["metadata"]["uid"]] = pod_needs(pod)

    def rejection(self, pod: Object, node: Object) -> Rejection | None:
        """Why the pod does not fit beside the others; None where it does."""
        name, uid, needs = node["metadata"]["name"], pod["metadata"]["uid"], pod_needs(pod)
        there = {
            other: amounts
            for other, amounts in self._admitted.get(name, {}).items()
            if self._is_alive(other)
        }
        self._admitted[name] = there
        offered = amounts_of(status_of(node).get("allocatable"))
        asked = sorted(each for each in needs if each not in _FIRST and each in offered)
        for resource in (*_DEVICES, *_FIRST, *asked):
            wanted, capacity = needs.get(resource, 0), offered.get(resource, 0)
            if (
                not wanted
                or resource == NVIDIA_GPU
                or resource.startswith(MIG_PREFIX)
                or (resource in _DEVICES and resource not in offered)
            ):
                continue
            used = sum(amounts.get(resource, 0) for other, amounts in there.items() if other != uid)
            if wanted > capacity - used:
                return _rejection(resource, wanted, used, capacity)
        return None


def _rejection(resource: str, wanted: int, used: int, capacity: int) -> Rejection:
    if resource in _DEVICES:
        return Rejection(UNEXPECTED, too_few_devices(resource, wanted, max(0, capacity - used)))
    detail = (
        f"Node didn't have enough resource: {resource}, requested: {wanted}, used: {used}, "
        f"capacity: {capacity}"
    )
    return Rejection(f"OutOf{resource}", detail)


def too_few_devices(resource: str, wanted: int, free: int) -> str:
    """The message of the kubelet's device manager."""
    why = (
        f"requested number of devices unavailable for {resource}. Requested: {wanted}, Available: "
        f"{free}"
    )
    return f"Allocate failed due to {why}, which is unexpected"
