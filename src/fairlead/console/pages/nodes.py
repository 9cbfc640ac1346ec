"""The form of the Nodes board: one row per node, and everything about one node.

A node without GPUs is a row too (mode `none`, unknown GPU figures null), because a node whose
device plugin died looks just like that; GPU nodes come first unless a sort is asked for.
"""

from __future__ import annotations

from fairlead.console.pages.envelope import Envelope, Json, ListAnswer, Timestamp
from fairlead.console.pages.events import EventRow


class NodeRow(Json, frozen=True):
    """`status`: Ready, NotReady or Unknown. `role`: comma list or `<none>`.

    `gpus_allocated` of a shared node is the sum of fractions. `gpu_units_...`: of
    `aliyun.com/gpu-mem`, in `gpu_unit` (GiB or MiB; "" on nodes without). `gpu_units_pending`: of
    pods that run here on an unknown card. `gpu_units_overcommitted`: granted on cards that have
    since become smaller. `gpus_draining`: cards that switch between exclusive and shared use and
    accept no new pods. `gpu_memory_used_of_mib`: total memory of the cards that report used memory;
    percentages refer to it.
    """

    name: str
    ip: str
    role: str
    status: str
    schedulable: bool
    gpu_mode: str
    gpus_total: int
    gpu_memory_total_mib: float | None
    gpus_allocated: float
    gpu_memory_allocated_mib: float | None
    gpu_memory_used_mib: float | None
    gpu_memory_used_of_mib: float | None
    gpu_util_percent: float | None
    gpu_model: str
    isolation: str
    gpus_unhealthy: int
    gpus_draining: int
    gpus_reporting: int
    gpu_unit: str
    gpu_units_total: int
    gpu_units_allocated: int
    gpu_units_pending: int
    gpu_units_overcommitted: int
    driver_version: str
    instance_type: str
    zone: str
    created_at: Timestamp | None
    cpu_total_cores: float
    memory_total_mib: float


class NodeList(ListAnswer, frozen=True):
    items: list[NodeRow]


class ConditionRow(Json, frozen=True):
    type: str
    status: str
    reason: str
    message: str
    at: Timestamp | None


class TaintRow(Json, frozen=True):
    key: str
    value: str
    effect: str


class LastXid(Json, frozen=True):
    code: int
    at: Timestamp | None


class GpuPod(Json, frozen=True):
    """One container of a pod on one GPU. `container` is "" if only the pod is known.

    `job` is `type/name` or empty; `used_mib` is null if it is not reported per container. `mode`:
    exclusive, share, timeslice, mps or mig. `units` of a shared card.
    """

    namespace: str
    name: str
    container: str
    job: str
    mode: str
    units: int
    core_percent: int
    allocated_mib: float | None
    used_mib: float | None
    util_percent: float | None


class MigInstanceRow(Json, frozen=True):
    """One MIG instance of a card: its id there, its profile (`1g.18gb`), and who has it."""

    id: int
    profile: str
    memory_total_mib: float | None
    memory_used_mib: float | None
    util_percent: float | None
    pods: list[GpuPod]


class GpuRow(Json, frozen=True):
    """`mode`: exclusive, shared, draining, topology or mig. `units`: what a shared card is divided
    into.

    `units_free`, `memory_free_mib`, `core_free_percent`: what a new pod could get; a broken or
    draining card gives nothing. Core percents are null where the node offers none. `mig_instances`:
    of a divided card, as its exporter reports them; the card's memory and utilization are their
    sums. `flags`: `used-without-allocation`, `idle` (allocated and below 1 % for an hour),
    `overcommitted`.
    """

    index: int
    uuid: str
    model: str
    mode: str
    units: int
    units_allocated: int
    units_free: int
    core_allocated_percent: int | None
    core_free_percent: int | None
    memory_total_mib: float | None
    memory_allocated_mib: float | None
    memory_free_mib: float | None
    memory_used_mib: float | None
    util_percent: float | None
    temperature_c: float | None
    power_w: float | None
    health: str
    reason: str
    last_xid: LastXid | None
    idle_seconds: int | None
    pods: list[GpuPod]
    mig_instances: list[MigInstanceRow]
    flags: list[str]


class NodePod(Json, frozen=True):
    """A pod that holds GPUs of this node. `gpu_indexes` is empty if unknown.

    `pending`: it shares a GPU, and no usable annotation names it (PENDING in `kubectl inspect
    cgpu`). `units` of `aliyun.com/gpu-mem`: granted, or requested by a pending pod. A terminating
    pod keeps what it holds until it is gone. `held_since`: when it was bound.
    """

    namespace: str
    name: str
    job: str
    phase: str
    status: str
    terminating: bool
    pending: bool
    gpu_indexes: list[int]
    units: int
    gpus: float
    gpu_memory_allocated_mib: float | None
    created_at: Timestamp | None
    held_since: Timestamp | None


class Sharing(Json, frozen=True):
    """How a node shares its GPUs. `offers`: its labels let new pods in.

    `placement`: its own wish, "" = as the scheduler is set. `units_free`: on all cards together;
    `largest_free`: on the one that has most, which is what decides. `conflict`: labels that
    contradict each other.
    """

    offers: bool
    placement: str
    conflict: str
    units_free: int
    largest_free: int
    largest_free_mib: float | None


class NodeDetail(Envelope, frozen=True):
    """`sharing` is null on a node that shares nothing."""

    node: NodeRow
    sharing: Sharing | None
    conditions: list[ConditionRow]
    taints: list[TaintRow]
    labels: dict[str, str]
    kubelet_version: str
    runtime_version: str
    os_image: str
    gpus: list[GpuRow]
    pods: list[NodePod]
    events: list[EventRow]
