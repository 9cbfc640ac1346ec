"""What does the Nodes board show? One row per node, and everything about one node.

A node without GPUs is a row too (mode `none`, unknown GPU figures null), because a node whose device plugin died looks
just like that; GPU nodes come first unless a sort is asked for.
"""

from __future__ import annotations

from fairlead.console.envelope import Answer, Json, ListAnswer, Timestamp


class NodeRow(Json, frozen=True):
    """`gpus_allocated` of a shared node is the sum of fractions; `status` Ready, NotReady or Unknown; `role` comma list or `<none>`."""

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
    gpu_util_percent: float | None
    gpu_model: str
    isolation: str
    gpus_unhealthy: int
    gpus_reporting: int
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
    """A pod on one GPU. `job` is `type/name` or empty; `used_mib` is null when nobody reports it per pod."""

    namespace: str
    name: str
    job: str
    allocated_mib: float | None
    used_mib: float | None
    util_percent: float | None


class GpuRow(Json, frozen=True):
    """`flags`: `used-without-allocation`, `idle` (allocated and below 1 % for an hour)."""

    index: int
    uuid: str
    model: str
    mode: str
    memory_total_mib: float | None
    memory_allocated_mib: float | None
    memory_used_mib: float | None
    util_percent: float | None
    temperature_c: float | None
    power_w: float | None
    health: str
    reason: str
    last_xid: LastXid | None
    idle_seconds: int | None
    pods: list[GpuPod]
    mig_instances: list[str]
    flags: list[str]


class NodePod(Json, frozen=True):
    """A pod that holds GPUs of this node."""

    namespace: str
    name: str
    job: str
    phase: str
    gpus: float
    gpu_memory_allocated_mib: float | None
    created_at: Timestamp | None


class NodeDetail(Answer, frozen=True):
    node: NodeRow
    conditions: list[ConditionRow]
    taints: list[TaintRow]
    labels: dict[str, str]
    kubelet_version: str
    runtime_version: str
    os_image: str
    gpus: list[GpuRow]
    pods: list[NodePod]
