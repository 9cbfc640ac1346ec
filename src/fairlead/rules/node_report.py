"""What does `arena top node` say about each node? Its type, its GPUs, who holds them (arena contract §5).

What a newcomer gets wrong: the type follows from *capacity*, never from allocatable (a node whose GPUs all failed is still a GPU
node), and a share node's GPU count is a sum of fractions, rounded once per node to one decimal.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from msgspec import Struct

from fairlead.model.gpu import GpuReading
from fairlead.model.keys import ANNOTATION_GPU_UNIT, LABEL_ROLE, LABEL_ROLE_PREFIX
from fairlead.model.node import Node
from fairlead.model.pod import Pod
from fairlead.model.pod_share import NO_SHARE, PodShare
from fairlead.model.resources import ALIYUN_GPU, GPU_CORE, GPU_COUNT, GPU_MEMORY, NVIDIA_GPU, largest_of, sum_of
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.model.topology import GpuTopology

NORMAL: Final = "none"
EXCLUSIVE: Final = "exclusive"
TOPOLOGY: Final = "topology"
SHARE: Final = "share"
MODES: Final = (NORMAL, EXCLUSIVE, TOPOLOGY, SHARE)
"""GPU modes in the order of the tables."""
RESOURCE_OF_MODE: Final = {EXCLUSIVE: NVIDIA_GPU, TOPOLOGY: ALIYUN_GPU, SHARE: GPU_MEMORY}
_LARGEST_GPU_IN_GIB: Final = 1024
_MOST_GPUS: Final = 4096
"""Devices listed on one node; a capacity of 10**30 is somebody's mistake and must not be looped over."""
_PIECES: Final = re.compile(r"(\d+)")


class HolderReport(Struct, frozen=True, gc=False):
    """A pod that asks for the node's GPU resource. `requested` in units of that resource, `core_percent` of compute."""

    pod: Pod
    requested: int
    core_percent: int = 0
    share: PodShare = NO_SHARE


class DeviceReport(Struct, frozen=True, gc=False):
    """One GPU of a share node, in units of `aliyun.com/gpu-mem` and percent."""

    index: int
    units: float
    units_allocated: int
    core: int = 0
    core_allocated: int = 0


class NodeReport(Struct, frozen=True, gc=False):
    """`unit_bytes`, `devices` and the unit and core totals are a share node's only; `topology` a topology node's only."""

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
    def memory_bytes(self) -> int:
        return self.units * self.unit_bytes

    @property
    def memory_allocated_bytes(self) -> int:
        return self.units_allocated * self.unit_bytes


def report_nodes(snapshot: ClusterSnapshot, share_of: Callable[[Pod], PodShare]) -> tuple[NodeReport, ...]:
    """All nodes by mode (normal, exclusive, topology, share), then name in natural order. `share_of` reads a pod's annotations."""
    reports = (_report(node, snapshot, share_of) for node in snapshot.nodes)
    return tuple(sorted(reports, key=lambda report: (MODES.index(report.mode), natural_key(report.node.name))))


def node_mode(node: Node, topologies: Mapping[str, GpuTopology]) -> str:
    """The first that matches: share, topology (label *and* ConfigMap, so it is in `topologies`), exclusive, normal."""
    if node.capacity.get(GPU_MEMORY, 0) > 0:
        return SHARE
    if node.name in topologies:
        return TOPOLOGY
    return EXCLUSIVE if node.capacity.get(NVIDIA_GPU, 0) > 0 else NORMAL


def requested(pod: Pod, resource: str) -> int:
    """Limits of the resource: the sum over containers (sidecars too), or one init container's when that is larger."""
    sidecars = [container.limits for container in pod.init_containers if container.restartable]
    together = sum_of([*(container.limits for container in pod.containers), *sidecars]).get(resource, 0)
    return max(together, largest_of(container.limits for container in pod.init_containers).get(resource, 0))


def _report(node: Node, snapshot: ClusterSnapshot, share_of: Callable[[Pod], PodShare]) -> NodeReport:
    mode = node_mode(node, snapshot.topologies)
    if mode == NORMAL:
        return NodeReport(node, NORMAL)
    holders = _holders(snapshot.pods_on(node.name), RESOURCE_OF_MODE[mode], share_of)
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
        gpus_unhealthy=max(0, total - node.allocatable.get(resource, 0)),
        holders=holders,
        readings=readings,
        topology=snapshot.topologies.get(node.name) if mode == TOPOLOGY else None,
    )


def _holders(pods: Iterable[Pod], resource: str, share_of: Callable[[Pod], PodShare]) -> tuple[HolderReport, ...]:
    found = []
    for pod in pods:
        amount = requested(pod, resource) if pod.is_holding else 0
        if amount > 0:
            found.append(HolderReport(pod, amount, requested(pod, GPU_CORE), share_of(pod)))
    return tuple(sorted(found, key=lambda holder: (holder.pod.namespace, natural_key(holder.pod.name))))


def _report_share(node: Node, holders: tuple[HolderReport, ...], readings: tuple[GpuReading, ...]) -> NodeReport:
    units, core = node.capacity.get(GPU_MEMORY, 0), node.capacity.get(GPU_CORE, 0)
    gpus = node.capacity.get(GPU_COUNT, 0) or len(readings)
    devices = _devices(node, gpus, units, core, holders)
    return NodeReport(
        node,
        SHARE,
        gpus=gpus,
        gpus_allocated=rounded(sum(each.units_allocated / each.units for each in devices if each.units > 0)),
        gpus_unhealthy=gpus * max(0, units - node.allocatable.get(GPU_MEMORY, 0)) // units,
        holders=holders,
        readings=readings,
        unit_bytes=unit_bytes(node, units, gpus),
        units=units,
        units_allocated=sum(each.units_allocated for each in devices),
        core=core,
        core_allocated=sum(each.core_allocated for each in devices),
        devices=devices,
    )


def _devices(node: Node, gpus: int, units: int, core: int, holders: tuple[HolderReport, ...]) -> tuple[DeviceReport, ...]:
    """The node's GPUs: each as the inventory says, else an equal part of the total. A grant on a GPU that is not there counts nowhere."""
    told = {slot.index: slot.units for slot in node.gpus if slot.units > 0}
    indexes = sorted(told) if told else range(min(gpus, _MOST_GPUS))
    return tuple(
        DeviceReport(
            index=index,
            units=told.get(index, units / gpus),
            units_allocated=sum(holder.share.units_by_gpu.get(index, 0) for holder in holders),
            core=core // len(indexes),
            core_allocated=sum(holder.share.core_by_gpu.get(index, 0) for holder in holders),
        )
        for index in indexes
    )


def unit_bytes(node: Node, units: int, gpus: int) -> int:
    """How much one unit of the node is: as its annotation says, else MiB when a GPU would have more than 1024 GiB."""
    told = node.annotations.get(ANNOTATION_GPU_UNIT, "")
    is_mib = told == "MiB" if told in ("MiB", "GiB") else gpus > 0 and units > _LARGEST_GPU_IN_GIB * gpus
    return 1 << 20 if is_mib else 1 << 30


def node_ip(node: Node) -> str:
    """The first InternalIP, else the first address, else `N/A`."""
    internal = (address for kind, address in node.addresses if kind == "InternalIP" and address)
    return next(internal, None) or next((address for _, address in node.addresses if address), "N/A")


def node_roles(node: Node) -> tuple[str, ...]:
    """Sorted roles of both labels; empty when it has none."""
    roles = {key.removeprefix(LABEL_ROLE_PREFIX) for key in node.labels if key.startswith(LABEL_ROLE_PREFIX)}
    return tuple(sorted(filter(None, roles | {node.labels.get(LABEL_ROLE, "")})))


def node_condition(node: Node) -> str:
    """`Ready`, `NotReady` or `Unknown` (no such condition), plus `,SchedulingDisabled` when cordoned."""
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
