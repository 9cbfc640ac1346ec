"""The room of each node: allocatable less what bound, unfinished pods ask.

A pod that is terminating still counts: it holds what it holds until its object is gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from fairlead.model.resources import CPU, Amounts, is_gpu_resource
from fairlead_sim.objects.conditions import is_true, status_of
from fairlead_sim.scheduler.affinity import NO_NEIGHBOURS, AllowedTopologies, suits_node
from fairlead_sim.scheduler.needs import amounts_of, untolerated

Object = dict[str, Any]

_NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
_CORDON = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}


class Shortfall(NamedTuple):
    """Why a node cannot take a pod, in Kubernetes' words.

    `is_final`: it could not even if other pods were evicted.
    """

    reasons: list[str]
    is_final: bool


@dataclass(slots=True)
class PodInRoom:
    """A pod that holds, or asks for, a place; `pod` is its newest object."""

    pod: Object
    needs: Amounts
    priority: int
    node: str = ""

    @property
    def uid(self) -> str:
        return str(self.pod["metadata"]["uid"])


@dataclass(slots=True)
class Room:
    """One node as the scheduler sees it.

    `promised`: pods that wait for victims to leave this node.
    """

    name: str
    labels: dict[str, str]
    taints: Sequence[Object]
    is_cordoned: bool
    allocatable: Amounts
    used: dict[str, int] = field(default_factory=dict)
    tenants: dict[str, PodInRoom] = field(default_factory=dict)
    promised: dict[str, PodInRoom] = field(default_factory=dict)

    @property
    def has_gpus(self) -> bool:
        return any(amount for name, amount in self.allocatable.items() if is_gpu_resource(name))

    def free(self, resource: str) -> int:
        return self.allocatable.get(resource, 0) - self.used.get(resource, 0)

    def admit(self, tenant: PodInRoom) -> None:
        self.tenants[tenant.uid] = tenant
        self._take(tenant.needs, 1)

    def release(self, tenant: PodInRoom) -> None:
        if self.tenants.pop(tenant.uid, None) is not None:
            self._take(tenant.needs, -1)

    def without(self, tenants: Iterable[PodInRoom]) -> Room:
        """A copy in which these pods are gone."""
        other = replace(self, used=dict(self.used), tenants=dict(self.tenants))
        for tenant in tenants:
            other.release(tenant)
        return other

    def _take(self, needs: Amounts, sign: int) -> None:
        for name, amount in needs.items():
            self.used[name] = self.used.get(name, 0) + sign * amount

    def refusal(
        self, asker: PodInRoom, neighbours: AllowedTopologies = NO_NEIGHBOURS
    ) -> Shortfall | None:
        """Why the pod cannot run here; None if it can. The first failing check alone speaks."""
        spec = asker.pod["spec"]
        tolerations = spec.get("tolerations") or ()
        if self.is_cordoned and untolerated([_CORDON], tolerations):
            return Shortfall(["node(s) were unschedulable"], True)
        if self.taints and untolerated(self.taints, tolerations):
            return Shortfall(["node(s) had untolerated taint(s)"], True)
        if not suits_node(spec, self.name, self.labels):
            return Shortfall(["node(s) didn't match Pod's node affinity/selector"], True)
        if lacking := self._lacking(asker):
            is_final = any(asker.needs[name] > self.allocatable.get(name, 0) for name in lacking)
            return Shortfall(
                ["Too many pods" if name == "pods" else f"Insufficient {name}" for name in lacking],
                is_final,
            )
        reason, is_final = neighbours.refusal(self.labels)
        return Shortfall([reason], is_final) if reason else None

    def _lacking(self, asker: PodInRoom) -> list[str]:
        """Resources of which too little is free.

        What is promised to pods of equal or higher priority is not free.
        """
        if not self.promised:
            return [name for name, amount in asker.needs.items() if amount > self.free(name)]
        ahead = [
            other.needs
            for uid, other in self.promised.items()
            if uid != asker.uid and other.priority >= asker.priority
        ]
        return [
            name
            for name, amount in asker.needs.items()
            if amount > self.free(name) - sum(needs.get(name, 0) for needs in ahead)
        ]

    def unwelcoming(self, spec: Object) -> int:
        """How many of the node's `PreferNoSchedule` taints the pod does not tolerate."""
        soft = [
            {**taint, "effect": "NoSchedule"}
            for taint in self.taints
            if taint["effect"] == "PreferNoSchedule"
        ]
        return sum(
            untolerated([taint], spec.get("tolerations") or ()) is not None for taint in soft
        )

    def busy_ratio(self) -> float:
        """Share of cpu already asked for."""
        total = self.allocatable.get(CPU, 0)
        return self.used.get(CPU, 0) / total if total else 1.0


def room_of(node: Object, before: Room | None) -> Room:
    """The room of a node; what is used and promised carries over from the room before."""
    spec, status = node.get("spec") or {}, status_of(node)
    taints = list(spec.get("taints") or ())
    if not is_true(node, "Ready") and not any(
        taint["key"] == _NOT_READY["key"] for taint in taints
    ):
        taints.append(_NOT_READY)
    return Room(
        name=node["metadata"]["name"],
        labels=node["metadata"].get("labels") or {},
        taints=taints,
        is_cordoned=bool(spec.get("unschedulable")),
        allocatable=amounts_of(status.get("allocatable")),
        used=before.used if before else {},
        tenants=before.tenants if before else {},
        promised=before.promised if before else {},
    )
