"""How much room has each node? The scheduler's running account: allocatable less what bound, unfinished pods ask.

A pod that is terminating still counts: it holds what it holds until its object is gone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from fairlead.model.resources import CPU, GPU_COUNT, GPU_MEMORY, NVIDIA_GPU, Amounts
from fairlead.sim.conditions import is_true, status_of
from fairlead.sim.needs import amounts_of, selects, untolerated

Object = dict[str, Any]

_NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}


@dataclass(slots=True)
class Room:
    """One node as the scheduler sees it."""

    name: str
    labels: dict[str, str]
    taints: Sequence[Object]
    is_cordoned: bool
    allocatable: Amounts
    used: dict[str, int] = field(default_factory=dict)

    @property
    def has_gpus(self) -> bool:
        return any(self.allocatable.get(name) for name in (NVIDIA_GPU, GPU_MEMORY, GPU_COUNT))

    def free(self, resource: str) -> int:
        return self.allocatable.get(resource, 0) - self.used.get(resource, 0)

    def take(self, needs: Amounts, sign: int = 1) -> None:
        for name, amount in needs.items():
            self.used[name] = self.used.get(name, 0) + sign * amount

    def refusals(self, spec: Object, needs: Amounts) -> list[str]:
        """Why the pod cannot run here, in Kubernetes' words; empty if it can. The first failing check alone speaks."""
        tolerations = spec.get("tolerations") or ()
        if self.is_cordoned and untolerated([_CORDON], tolerations):
            return ["node(s) were unschedulable"]
        taint = untolerated(self.taints, tolerations)
        if taint is not None:
            return [f"node(s) had untolerated taint {{{taint['key']}: {taint.get('value', '')}}}"]
        if not selects(spec.get("nodeSelector") or {}, self.labels):
            return ["node(s) didn't match Pod's node affinity/selector"]
        return [_insufficient(name) for name, amount in needs.items() if amount > self.free(name)]

    def busy_ratio(self) -> float:
        """Share of cpu already asked for."""
        total = self.allocatable.get(CPU, 0)
        return self.used.get(CPU, 0) / total if total else 1.0


_CORDON = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}


def room_of(node: Object, before: Room | None) -> Room:
    """The room of a node; what is used carries over from the room before."""
    spec, status = node.get("spec") or {}, status_of(node)
    taints = list(spec.get("taints") or ())
    if not is_true(node, "Ready") and not any(taint["key"] == _NOT_READY["key"] for taint in taints):
        taints.append(_NOT_READY)
    return Room(
        name=node["metadata"]["name"],
        labels=node["metadata"].get("labels") or {},
        taints=taints,
        is_cordoned=bool(spec.get("unschedulable")),
        allocatable=amounts_of(status.get("allocatable")),
        used=before.used if before else {},
    )


def _insufficient(resource: str) -> str:
    return "Too many pods" if resource == "pods" else f"Insufficient {resource}"
