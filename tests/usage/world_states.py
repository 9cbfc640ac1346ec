"""The kept states of a simulated world, written by its own changes: what a recorder stores, without
a recorder.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
from msgspec.structs import replace

from fairlead.kinds.workloads import WORKLOAD_KINDS
from fairlead.model.node import Node
from fairlead.model.pod import Pod
from fairlead.model.quota.tree import QuotaTree
from fairlead.model.resources import NVIDIA_GPU
from fairlead.model.usage.ledger import (
    GPU,
    OPEN,
    Amount,
    KeptState,
    LedgerBatch,
    NodeInterval,
    PodInterval,
    PriceClass,
    StateKind,
    UsedBy,
)
from fairlead.ports import LedgerWriting
from fairlead.rules.usage.replay.history import PastRow
from fairlead.wire.kube.budgets import WireBudget, parse_budget
from fairlead.wire.kube.objects import WireNode, WirePod, parse_node, parse_pod
from fairlead.wire.quota.elastic_quota import WireQuotaTree, parse_quota_tree
from fairlead.wire.usage.states import state_body
from fairlead_sim.objects.resources import (
    ELASTIC_QUOTA_TREES,
    NODES,
    POD_DISRUPTION_BUDGETS,
    PODS,
)
from fairlead_sim.objects.watch_log import DELETED, LoggedChange
from fairlead_sim.schema.resource import ResourceKind
from fairlead_sim.world.world import World

Object = dict[str, Any]
NAME_LABEL = "aliyun.accelerator/nvidia_name"


class WorldStates:
    """Follows a world from now on. `rows`: in the order in which they began."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.rows: list[PastRow] = []
        self._open: dict[tuple[StateKind, str], int] = {}
        self._follow(PODS, StateKind.POD, WirePod, parse_pod)
        self._follow(NODES, StateKind.NODE, WireNode, parse_node)
        self._follow(ELASTIC_QUOTA_TREES, StateKind.TREE, WireQuotaTree, parse_quota_tree)
        self._follow(POD_DISRUPTION_BUDGETS, StateKind.BUDGET, WireBudget, parse_budget)
        served = {(ref.group, ref.version, ref.plural): ref for ref in world.cluster.kinds()}
        for kind in WORKLOAD_KINDS:
            for version in kind.versions:
                if (ref := served.get((kind.group, version, kind.plural))) is not None:
                    parse = partial(_with_version, kind.parse, version)
                    self._follow(ref, StateKind.WORKLOAD, kind.wire, parse)
                    break

    @property
    def tree(self) -> QuotaTree:
        """The last quota tree."""
        return next(each.row for each in reversed(self.rows) if isinstance(each.row, QuotaTree))

    async def write(self, ledger: LedgerWriting, start: int, end: int) -> None:
        """All of them, and the intervals that follow from them; milliseconds."""
        epoch = (await ledger.claim_ledger("world", start)).epoch
        states = tuple(_kept(each) for each in self.rows)
        classes = {each.row.name: _class_of(each.row) for each in self.rows if _is_node(each)}
        pods: dict[str, PodInterval] = {}
        for each in self.rows:
            if isinstance(each.row, Pod):
                before = pods.get(each.uid)
                if each.row.is_holding:
                    began = before or _begun(each, each.row, classes)
                    pods[each.uid] = replace(began, ended_at=each.ended_at)
        nodes = tuple(
            NodeInterval(each.uid, start, each.row.name, classes[each.row.name])
            for each in {each.uid: each for each in self.rows if _is_node(each)}.values()
        )
        await ledger.write_ledger(epoch, LedgerBatch(start, nodes=nodes))
        await ledger.write_ledger(epoch, LedgerBatch(end, pods=tuple(pods.values()), states=states))

    def _follow(
        self, ref: ResourceKind, kind: StateKind, wire: type[Any], parse: Callable[[Any], Any]
    ) -> None:
        decoder = msgspec.json.Decoder(wire)

        def row(obj: Object) -> Any:
            return parse(decoder.decode(msgspec.json.encode(obj)))

        for obj in self._world.cluster.scan(ref):
            self._put(kind, obj["metadata"]["uid"], row(obj))
        self._world.cluster.subscribe(ref, lambda change: self._on_change(kind, row, change))

    def _on_change(
        self, kind: StateKind, row: Callable[[Object], Any], change: LoggedChange
    ) -> None:
        uid = change.object["metadata"]["uid"]
        self._put(kind, uid, None if change.type == DELETED else row(change.object))

    def _put(self, kind: StateKind, uid: str, row: Any) -> None:
        if isinstance(row, QuotaTree):
            row = replace(row, status={}, user_use=())
        at, before = round(self._world.clock.now() * 1000), self._open.get((kind, uid))
        if before is not None:
            if self.rows[before].row == row:
                return
            self.rows[before] = replace(self.rows[before], ended_at=at)
        if row is None:
            self._open.pop((kind, uid), None)
            return
        self._open[kind, uid] = len(self.rows)
        self.rows.append(PastRow(kind, uid, at, OPEN, row))


def _is_node(state: PastRow) -> bool:
    return isinstance(state.row, Node)


def _kept(state: PastRow) -> KeptState:
    row: Any = state.row
    return KeptState(
        state.kind,
        state.uid,
        state.started_at,
        getattr(row, "namespace", ""),
        row.name,
        state_body(row),
        state.ended_at,
    )


def _class_of(node: Any) -> PriceClass:
    return PriceClass(
        model=node.labels.get(NAME_LABEL, ""),
        gpu=node.capacity.get(NVIDIA_GPU, 0) * GPU,
        cpu_milli=node.capacity.get("cpu", 0),
        memory_mib=node.capacity.get("memory", 0) >> 20,
    )


def _begun(state: PastRow, pod: Pod, classes: dict[str, PriceClass]) -> PodInterval:
    return PodInterval(
        state.uid,
        state.started_at,
        UsedBy(pod.namespace),
        pod.name,
        pod.node,
        classes[pod.node],
        Amount(gpu=pod.requests.get(NVIDIA_GPU, 0) * GPU),
    )


def _with_version(parse: Callable[[Any, str], Any], version: str, wire: Any) -> Any:
    return parse(wire, version)
