"""An API server in memory for the quota controller, on a clock that jumps: its pods are the truth,
and a call takes some time.

Note: this module knows no quota. The test counts whether too much runs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from msgspec import structs

from fairlead.errors import OutsideError
from fairlead.model.actions import (
    Action,
    AdmitPod,
    EvictPod,
    Outcome,
    PatchObject,
    RecordObjectEvent,
    Result,
    SetPodCondition,
)
from fairlead.model.changes import (
    KIND_BUDGETS,
    KIND_NAMESPACES,
    KIND_NODES,
    KIND_PODS,
    KIND_QUOTA_TREES,
    Observe,
    changed,
    listed,
)
from fairlead.model.keys import QUOTA_GATE
from fairlead.model.node import Condition, Node
from fairlead.model.people.rows import KIND_GROUPS
from fairlead.model.pod import Container, Owner, Pod
from fairlead.model.quota.rows import Namespace
from fairlead.model.quota.tree import QuotaNode, QuotaTree
from fairlead.ports import LeaseRecord

NOW: Final = 1_767_600_000.0
PLACE: Final = "team"
NODE: Final = Node(
    "node",
    "node",
    allocatable={"cpu": 1_000_000, "pods": 1000},
    conditions=(Condition("Ready", "True"),),
)


def tree(leaf_max: int = 10_000) -> QuotaTree:
    """A root and one leaf with a max of `leaf_max` thousandths of a cpu."""
    bounds = {"cpu": leaf_max}
    leaf = QuotaNode("root.a", "root.a", "root", min=bounds, max=bounds, namespaces=(PLACE,))
    return QuotaTree(
        "elasticquotatree",
        "kube-system",
        QuotaNode("root", "root", min=bounds, max=bounds, children=(leaf,)),
        "tree",
        1,
    )


def waiting_pod(name: str, cpu: int = 1000) -> Pod:
    owner = Owner("ReplicaSet", "web", "rs", controller=True)
    asks = Container("main", requests={"cpu": cpu})
    return Pod(
        PLACE,
        name,
        f"uid-{name}",
        gates=(QUOTA_GATE,),
        containers=(asks,),
        owners=(owner,),
        created_at=NOW,
    )


@dataclass
class FakeQuotaServer:
    """`calls`: the actions carried out and their times. `seconds`: how long a call takes. `away`:
    no call is answered.
    """

    now: Callable[[], float]
    seconds: float = 0.01
    pods: dict[str, Pod] = field(default_factory=dict)
    trees: dict[str, QuotaTree] = field(default_factory=lambda: {"tree": tree()})
    calls: list[tuple[float, Action]] = field(default_factory=list)
    lease: LeaseRecord | None = None
    away: bool = False
    under_way: int = 0
    most_under_way: int = 0
    lists: int = 0
    outcome: Callable[[Action], Outcome | None] = lambda _: None
    watchers: list[Observe] = field(default_factory=list)

    def write(self, pod: Pod) -> None:
        self.pods[pod.uid] = pod
        for each in self.watchers:
            each(changed(KIND_PODS, pod.uid, pod))

    def remove(self, uid: str) -> None:
        self.pods.pop(uid)
        for each in self.watchers:
            each(changed(KIND_PODS, uid, None))

    def done(self, kind: type[Any]) -> list[Any]:
        return [action for _, action in self.calls if isinstance(action, kind)]

    def first(self, kind: type[Any]) -> float:
        """The time at which the first action of this kind was carried out."""
        return next(at for at, action in self.calls if isinstance(action, kind))

    def carry_out(self, action: Action) -> Outcome:
        self.calls.append((self.now(), action))
        if (outcome := self.outcome(action)) is not None:
            return outcome
        if isinstance(action, AdmitPod | SetPodCondition | EvictPod):
            pod = self.pods.get(action.target.uid)
            if pod is None:
                return Outcome(Result.GONE)
            if isinstance(action, AdmitPod):
                self.write(structs.replace(pod, gates=()))
            elif isinstance(action, SetPodCondition):
                kept = tuple(each for each in pod.conditions if each.type != action.condition.type)
                self.write(structs.replace(pod, conditions=(*kept, action.condition)))
            elif not action.is_trial:
                self.remove(pod.uid)
        return Outcome(made={"metadata": {}}) if isinstance(action, PatchObject) else Outcome()


class FakeQuotaApi:
    """One controller's connection to the server. `most_seconds`: the longest time that a write may
    be under way.
    """

    most_seconds = 3.0
    workload_kinds = "ReplicaSet", "Job"

    def __init__(self, server: FakeQuotaServer) -> None:
        self._server = server

    async def follow(self, observe: Observe) -> None:
        server = self._server
        server.lists += 1
        await asyncio.sleep(server.seconds)
        observe(listed(KIND_NODES, {"node": NODE}))
        observe(listed(KIND_NAMESPACES, {"ns": Namespace(PLACE, "ns")}))
        observe(listed(KIND_QUOTA_TREES, dict(server.trees)))
        observe(listed(KIND_BUDGETS, {}))
        observe(listed(KIND_GROUPS, {}))
        for each in self.workload_kinds:
            observe(listed(each, {}))
        await asyncio.sleep(server.seconds)
        observe(listed(KIND_PODS, dict(server.pods)))
        server.watchers.append(observe)
        try:
            await asyncio.Event().wait()
        finally:
            server.watchers.remove(observe)

    async def apply(self, action: Action, left: Callable[[], float] | None = None) -> Outcome:
        server = self._server
        if left is not None and left() < 0.25:
            return Outcome(Result.REFUSED, "the lease has run out")
        assert (
            isinstance(action, RecordObjectEvent) if left is None else left() <= self.most_seconds
        ), action
        server.under_way += 1
        server.most_under_way = max(server.most_under_way, server.under_way)
        try:
            await asyncio.sleep(server.seconds)
        finally:
            server.under_way -= 1
        return server.carry_out(action)

    async def get_lease(self) -> LeaseRecord | None:
        self._answer()
        return self._server.lease

    async def put_lease(self, record: LeaseRecord) -> LeaseRecord | None:
        self._answer()
        before = self._server.lease
        if record.version != (before.version if before else ""):
            return None
        version = str(int(record.version or 0) + 1)
        self._server.lease = structs.replace(
            record, renewed=record.renewed or version, version=version
        )
        return self._server.lease

    def _answer(self) -> None:
        if self._server.away:
            raise OutsideError("kubernetes", "connection refused")
