"""The account as arena shows it: a node's type, its GPUs and their holders.

As in `arena top node` (docs/spec/arena-cli.md#nodes).

The type follows from *capacity*, never from allocatable (a node whose GPUs all failed is still a
GPU node). A share node's GPU count is an exact sum of fractions: it is rounded last, when it is
shown, so that a sum over nodes is not a sum of rounded values.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct

from fairlead.model.devices.gpu import CardMode, GpuMode, GpuReading
from fairlead.model.devices.topology import GpuTopology
from fairlead.model.node import Node
from fairlead.model.occupancy import rounded_gpus
from fairlead.model.pod import Pod
from fairlead.model.resources import (
    ALIYUN_GPU,
    GPU_CORE,
    GPU_COUNT,
    GPU_MEMORY,
    NVIDIA_GPU,
    Amounts,
    nvidia_gpus,
)
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.rules.holding.account import CardAccount, NodeAccount, Seat, account
from fairlead.rules.holding.units import MIB_PER_UNIT
from fairlead.rules.nodes.status import (
    EXCLUSIVE,
    NO_GPU,
    SHARE,
    TOPOLOGY,
    is_topology_node,
    share_mode,
)

NORMAL: Final = NO_GPU
MODES: Final = (NORMAL, EXCLUSIVE, TOPOLOGY, SHARE)
"""GPU modes in the order of the tables."""
RESOURCE_OF_MODE: Final = {EXCLUSIVE: NVIDIA_GPU, TOPOLOGY: ALIYUN_GPU, SHARE: GPU_MEMORY}
_BYTES_PER_MIB: Final = 1 << 20
_PIECES: Final = re.compile(r"(\d+)")


class HolderReport(Struct, frozen=True, gc=False):
    """A pod that asks for the node's GPU resource: what it asks for, and what its grants contain.

    `requested` in units of the resource. The three fields by GPU index are empty for a pod without
    usable annotations: it is listed, and allocated nowhere. `whole`: the cards of a topology group.
    """

    pod: Pod
    requested: int
    core_percent: int = 0
    units_by_gpu: Mapping[int, int] = {}
    core_by_gpu: Mapping[int, int] = {}
    whole: tuple[int, ...] = ()


class DeviceReport(Struct, frozen=True, gc=False):
    """One GPU of a share node, in units of `aliyun.com/gpu-mem` and percent."""

    index: int
    units: float
    units_allocated: int
    core: int = 0
    core_allocated: int = 0


class NodeReport(Struct, frozen=True, gc=False):
    """One node. Only a share node has `unit_bytes`, `devices` and the unit and core totals.

    Only a topology node has `topology`. `gpus_allocated` is exact, for sums over nodes.
    `gpus_allocated_shown` is rounded to one decimal.
    """

    node: Node
    mode: GpuMode
    gpus: int = 0
    gpus_allocated: float = 0
    gpus_unhealthy: int = 0
    holders: tuple[HolderReport, ...] = ()
    readings: tuple[GpuReading, ...] = ()
    topology: GpuTopology | None = None
    unit_bytes: int = 1 << 30
    units: int = 0
    units_allocated: int = 0
    core: int = 0
    core_allocated: int = 0
    devices: tuple[DeviceReport, ...] = ()

    @property
    def gpus_allocated_shown(self) -> float:
        return rounded_gpus(self.gpus_allocated)

    @property
    def memory_bytes(self) -> int:
        return self.units * self.unit_bytes

    @property
    def memory_allocated_bytes(self) -> int:
        return self.units_allocated * self.unit_bytes


def report_nodes(snapshot: ClusterSnapshot) -> tuple[NodeReport, ...]:
    """All nodes by mode (normal, exclusive, topology, share), then name in natural order."""
    reports = (_report(node, snapshot) for node in snapshot.nodes)
    return tuple(
        sorted(
            reports, key=lambda report: (MODES.index(report.mode), natural_key(report.node.name))
        )
    )


def node_mode(node: Node, snapshot: ClusterSnapshot) -> GpuMode:
    """The first that matches: share, topology, exclusive, normal.

    Topology needs label *and* ConfigMap, whatever the capacity.
    """
    if node.capacity.get(GPU_MEMORY, 0) > 0:
        return SHARE
    if is_topology_node(node, snapshot):
        return TOPOLOGY
    return EXCLUSIVE if nvidia_gpus(node.capacity) > 0 else NORMAL


def _amount(amounts: Amounts, resource: str) -> int:
    """The amount of a mode's resource, with renamed time slices of GPUs."""
    return nvidia_gpus(amounts) if resource == NVIDIA_GPU else amounts.get(resource, 0)


def _report(node: Node, snapshot: ClusterSnapshot) -> NodeReport:
    mode = node_mode(node, snapshot)
    if mode == NORMAL:
        return NodeReport(node, NORMAL)
    resource, readings = RESOURCE_OF_MODE[mode], tuple(snapshot.gpus_on(node.name))
    pods = [
        pod
        for pod in snapshot.pods_on(node.name)
        if pod.is_holding and _amount(pod.limits, resource) > 0
    ]
    held = account(node, pods, readings, mode=mode)
    holders = sorted(
        (_holder(pod, resource, held) for pod in pods),
        key=lambda each: (each.pod.namespace, natural_key(each.pod.name)),
    )
    if mode == SHARE:
        return _report_share(node, held, tuple(holders), readings)
    total = _amount(node.capacity, resource)
    return NodeReport(
        node,
        mode,
        gpus=total,
        gpus_allocated=sum(holder.requested for holder in holders),
        gpus_unhealthy=_faulty(node, total - _amount(node.allocatable, resource)),
        holders=tuple(holders),
        readings=readings,
        topology=snapshot.topologies.get(node.name, GpuTopology()) if mode == TOPOLOGY else None,
    )


def _holder(pod: Pod, resource: str, held: NodeAccount) -> HolderReport:
    limits, seats = pod.limits, held.seats_of(pod)
    if not seats:
        return HolderReport(pod, _amount(limits, resource), limits.get(GPU_CORE, 0))
    return HolderReport(
        pod,
        _amount(limits, resource),
        limits.get(GPU_CORE, 0),
        units_by_gpu=_by_gpu((seat, seat.grant.units) for seat in seats),
        core_by_gpu=_by_gpu((seat, seat.grant.core_percent) for seat in seats),
        whole=tuple(sorted({seat.index for seat in seats if seat.is_whole})),
    )


def _by_gpu(amounts: Iterable[tuple[Seat, int]]) -> Mapping[int, int]:
    total: dict[int, int] = {}
    for seat, amount in amounts:
        if amount > 0:
            total[seat.index] = total.get(seat.index, 0) + amount
    return dict(sorted(total.items()))


def _report_share(
    node: Node,
    held: NodeAccount,
    holders: tuple[HolderReport, ...],
    readings: tuple[GpuReading, ...],
) -> NodeReport:
    units, core = node.capacity.get(GPU_MEMORY, 0), node.capacity.get(GPU_CORE, 0)
    gpus = node.capacity.get(GPU_COUNT, 0) or len(readings)
    devices = _devices(node, held, gpus, units, core)
    return NodeReport(
        node,
        SHARE,
        gpus=gpus,
        gpus_allocated=sum(each.units_allocated / each.units for each in devices if each.units > 0),
        gpus_unhealthy=_faulty(
            node, gpus * (units - node.allocatable.get(GPU_MEMORY, 0)) // units, is_shared=True
        ),
        holders=holders,
        readings=readings,
        unit_bytes=MIB_PER_UNIT[held.unit] * _BYTES_PER_MIB,
        units=units,
        units_allocated=sum(each.units_allocated for each in devices),
        core=core,
        core_allocated=sum(each.core_allocated for each in devices),
        devices=devices,
    )


def _faulty(node: Node, withheld: int, *, is_shared: bool = False) -> int:
    """GPUs that are not allocatable, less those that only drain from one mode into the other.

    Draining GPUs are not faulty: they are withheld from the resource of the mode that they leave,
    which is not the one that the node's labels ask for.
    """
    is_left = share_mode(node.labels).is_shared is not is_shared
    return max(0, withheld - sum(slot.mode == CardMode.DRAINING for slot in node.gpus) * is_left)


def _devices(
    node: Node, held: NodeAccount, gpus: int, units: int, core: int
) -> tuple[DeviceReport, ...]:
    """The node's GPUs: those that its inventory shares, else an
    equal part of the total for each.
    """
    from_inventory = (
        [card for card in held.cards if _is_shared(card)]
        if any(slot.units > 0 for slot in node.gpus)
        else []
    )
    shown = from_inventory or held.cards[:gpus]
    return tuple(
        DeviceReport(
            index=card.index,
            # docs/spec/arena-cli.md#share-nodes: total / GPUs, exactly; the account has whole units
            units=card.units if from_inventory else units / gpus,
            units_allocated=card.used,
            # docs/spec/arena-cli.md#share-nodes of the node's capacity; the account has 100 % for
            # each card
            core=core // len(shown),
            core_allocated=card.core_used,
        )
        for card in shown
    )


def _is_shared(card: CardAccount) -> bool:
    """A draining card without a sharer is not shared: it is still held as a whole."""
    return card.units > 0 and (not card.gpu.is_draining or card.used > 0)


def node_condition(node: Node) -> str:
    """`Ready`, `NotReady` or `Unknown` (no such condition), plus `,SchedulingDisabled` if cordoned.

    It differs from `rules/nodes/status.status_word`: arena shows a node with a silent kubelet
    (condition `Unknown`) as NotReady.
    """
    ready = next(
        (condition.status for condition in node.conditions if condition.type == "Ready"), None
    )
    word = "Unknown" if ready is None else "Ready" if ready == "True" else "NotReady"
    return f"{word},SchedulingDisabled" if node.unschedulable else word


def natural_key(name: str) -> tuple[tuple[int, int, str], ...]:
    """Sort key that puts `node-9` before `node-10`.

    >>> sorted(["node-10", "node-9", "Node"], key=natural_key)
    ['Node', 'node-9', 'node-10']
    """
    return tuple(
        (0, int(piece), piece) if piece.isdecimal() else (1, 0, piece)
        for piece in _PIECES.split(name)
    )
