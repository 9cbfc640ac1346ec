"""What does `arena top node` say about each node? Its type, its GPUs, who holds them (arena contract §5).

These are arena's own definitions: from what the API server says, not from what devices say (`rules.occupancy` has the boards').
What a newcomer gets wrong: the type follows from *capacity*, never from allocatable (a node whose GPUs all failed is still a GPU
node), and a share node's GPU count is an exact sum of fractions: whoever shows it rounds, last, so that a sum over nodes is not a sum of
roundings.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct

from fairlead.model.gpu import GpuReading, Grant
from fairlead.model.keys import ANNOTATION_GPU_UNIT
from fairlead.model.node import Node
from fairlead.model.pod import Pod
from fairlead.model.resources import ALIYUN_GPU, GPU_CORE, GPU_COUNT, GPU_MEMORY, NVIDIA_GPU
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.model.topology import GpuTopology
from fairlead.rules.holding.booked import booked_grants
from fairlead.rules.node_status import EXCLUSIVE, NO_GPU, SHARE, TOPOLOGY
from fairlead.rules.share_mode import share_mode

NORMAL: Final = NO_GPU
MODES: Final = (NORMAL, EXCLUSIVE, TOPOLOGY, SHARE)
"""GPU modes in the order of the tables."""
RESOURCE_OF_MODE: Final = {EXCLUSIVE: NVIDIA_GPU, TOPOLOGY: ALIYUN_GPU, SHARE: GPU_MEMORY}
_LARGEST_GPU_IN_GIB: Final = 1024
_MOST_GPUS: Final = 4096
"""Devices listed on one node; a capacity of 10**30 is somebody's mistake and must not be looped over."""
_PIECES: Final = re.compile(r"(\d+)")


class HolderReport(Struct, frozen=True, gc=False):
    """A pod that asks for the node's GPU resource: what it asks for, and what its grants say it has, by GPU index.

    `requested` in units of the resource. All three mappings are empty for a pod whose annotations say nothing usable: it is listed,
    and allocated nowhere. `whole` = the cards of a topology group.
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
    """`unit_bytes`, `devices` and the unit and core totals are a share node's only; `topology` a topology node's only.

    `gpus_allocated` is exact: what is added up over nodes. `gpus_allocated_shown` has the one decimal that a person reads.
    """

    node: Node
    mode: str
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
        return rounded(self.gpus_allocated)

    @property
    def memory_bytes(self) -> int:
        return self.units * self.unit_bytes

    @property
    def memory_allocated_bytes(self) -> int:
        return self.units_allocated * self.unit_bytes


def report_nodes(snapshot: ClusterSnapshot) -> tuple[NodeReport, ...]:
    """All nodes by mode (normal, exclusive, topology, share), then name in natural order."""
    reports = (_report(node, snapshot) for node in snapshot.nodes)
    return tuple(sorted(reports, key=lambda report: (MODES.index(report.mode), natural_key(report.node.name))))


def node_mode(node: Node, topologies: Mapping[str, GpuTopology]) -> str:
    """The first that matches: share, topology (label *and* ConfigMap, so it is in `topologies`), exclusive, normal."""
    if node.capacity.get(GPU_MEMORY, 0) > 0:
        return SHARE
    if node.name in topologies:
        return TOPOLOGY
    return EXCLUSIVE if node.capacity.get(NVIDIA_GPU, 0) > 0 else NORMAL


def _report(node: Node, snapshot: ClusterSnapshot) -> NodeReport:
    mode = node_mode(node, snapshot.topologies)
    if mode == NORMAL:
        return NodeReport(node, NORMAL)
    holders = _holders(snapshot.pods_on(node.name), RESOURCE_OF_MODE[mode])
    readings = tuple(snapshot.gpus_on(node.name))
    if mode == SHARE:
        return _report_share(node, holders, readings)
    resource = RESOURCE_OF_MODE[mode]
    total = node.capacity.get(resource, 0)
    return NodeReport(
        node,
        mode,
        gpus=total,
        gpus_allocated=sum(holder.requested for holder in holders),
        gpus_unhealthy=_faulty(node, total - node.allocatable.get(resource, 0)),
        holders=holders,
        readings=readings,
        topology=snapshot.topologies.get(node.name) if mode == TOPOLOGY else None,
    )


def _holders(pods: Iterable[Pod], resource: str) -> tuple[HolderReport, ...]:
    found = []
    for pod in pods:
        limits = pod.limits if pod.is_holding else {}
        if limits.get(resource, 0) > 0:
            found.append(_holder(pod, limits[resource], limits.get(GPU_CORE, 0)))
    return tuple(sorted(found, key=lambda holder: (holder.pod.namespace, natural_key(holder.pod.name))))


def _holder(pod: Pod, requested: int, core_percent: int) -> HolderReport:
    grants = [grant for each in booked_grants(pod).values() for grant in each]
    return HolderReport(
        pod,
        requested,
        core_percent,
        units_by_gpu=_by_gpu((grant, grant.units) for grant in grants),
        core_by_gpu=_by_gpu((grant, grant.core_percent) for grant in grants),
        whole=tuple(sorted({grant.index for grant in grants if grant.units == 0})),
    )


def _by_gpu(amounts: Iterable[tuple[Grant, int]]) -> Mapping[int, int]:
    total: dict[int, int] = {}
    for grant, amount in amounts:
        if amount > 0:
            total[grant.index] = total.get(grant.index, 0) + amount
    return dict(sorted(total.items()))


def _report_share(node: Node, holders: tuple[HolderReport, ...], readings: tuple[GpuReading, ...]) -> NodeReport:
    units, core = node.capacity.get(GPU_MEMORY, 0), node.capacity.get(GPU_CORE, 0)
    gpus = node.capacity.get(GPU_COUNT, 0) or len(readings)
    devices = _devices(node, gpus, units, core, holders)
    return NodeReport(
        node,
        SHARE,
        gpus=gpus,
        gpus_allocated=sum(each.units_allocated / each.units for each in devices if each.units > 0),
        gpus_unhealthy=_faulty(node, gpus * (units - node.allocatable.get(GPU_MEMORY, 0)) // units, is_shared=True),
        holders=holders,
        readings=readings,
        unit_bytes=unit_bytes(node, units, gpus),
        units=units,
        units_allocated=sum(each.units_allocated for each in devices),
        core=core,
        core_allocated=sum(each.core_allocated for each in devices),
        devices=devices,
    )


def _faulty(node: Node, withheld: int, *, is_shared: bool = False) -> int:
    """GPUs that are not allocatable, less those that only drain from one mode into the other: that is no fault.

    They are withheld from the resource of the mode that they leave, which is not the one that the node's labels want.
    """
    is_left = share_mode(node.labels).is_shared is not is_shared
    return max(0, withheld - sum(slot.mode == "draining" for slot in node.gpus) * is_left)


def _devices(node: Node, gpus: int, units: int, core: int, holders: tuple[HolderReport, ...]) -> tuple[DeviceReport, ...]:
    """The node's GPUs: each as the inventory says, else an equal part of the total. A grant on a GPU that is not there counts nowhere.

    A GPU that drains and has no sharer is not among them: it is still held whole.
    """
    used = {index for holder in holders for index in holder.units_by_gpu}
    told = {slot.index: slot.units for slot in node.gpus if slot.units > 0 and (slot.mode != "draining" or slot.index in used)}
    indexes = sorted(told) if told else range(min(gpus, _MOST_GPUS))
    return tuple(
        DeviceReport(
            index=index,
            units=told.get(index, units / gpus),
            units_allocated=sum(holder.units_by_gpu.get(index, 0) for holder in holders),
            core=core // len(indexes),
            core_allocated=sum(holder.core_by_gpu.get(index, 0) for holder in holders),
        )
        for index in indexes
    )


def unit_bytes(node: Node, units: int, gpus: int) -> int:
    """How much one unit of the node is: as its annotation says, else MiB when a GPU would have more than 1024 GiB."""
    told = node.annotations.get(ANNOTATION_GPU_UNIT, "")
    is_mib = told == "MiB" if told in ("MiB", "GiB") else gpus > 0 and units > _LARGEST_GPU_IN_GIB * gpus
    return 1 << 20 if is_mib else 1 << 30


def node_condition(node: Node) -> str:
    """`Ready`, `NotReady` or `Unknown` (no such condition), plus `,SchedulingDisabled` when cordoned.

    Not `node_status.status_word`: arena calls a node whose kubelet fell silent (condition `Unknown`) NotReady.
    """
    ready = next((condition.status for condition in node.conditions if condition.type == "Ready"), None)
    word = "Unknown" if ready is None else "Ready" if ready == "True" else "NotReady"
    return f"{word},SchedulingDisabled" if node.unschedulable else word


def rounded(gpus: float) -> float:
    """A GPU count to one decimal, halves up.

    >>> rounded(0.75), rounded(0.15 + 0.1), rounded(2)
    (0.8, 0.3, 2.0)
    """
    return int(round(gpus * 10, 6) + 0.5) / 10


def natural_key(name: str) -> tuple[tuple[int, int, str], ...]:
    """Sorts `node-9` before `node-10`.

    >>> sorted(["node-10", "node-9", "Node"], key=natural_key)
    ['Node', 'node-9', 'node-10']
    """
    return tuple((0, int(piece), piece) if piece.isdecimal() else (1, 0, piece) for piece in _PIECES.split(name))
