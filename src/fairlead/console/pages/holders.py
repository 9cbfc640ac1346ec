"""The form of the list of holders: every pod that holds a GPU or a part of one, with totals."""

from __future__ import annotations

from fairlead.console.pages.envelope import Json, ListAnswer, Timestamp


class Holder(Json, frozen=True):
    """`owner_kind`, `owner`: the object that created the pod, "" for a pod without an owner.

    `job`: of a training job's pod, `type/name`. `gpus` counts cards, with fractions for shared
    ones. `gpu_indexes` is empty if unknown. `held_since`: when it was bound. `idle_seconds`: how
    long all its cards have been idle, 0 if it is known to use one, null if unknown. `gpus_idle`:
    its GPUs that have been idle for an hour. `gpu_hours_idle`: idle GPU hours of the last day;
    without a Prometheus of the last hour, and of the current idle time. `gpu_memory_used_of_mib`:
    its memory on the cards that report its use.
    """

    namespace: str
    name: str
    owner_kind: str
    owner: str
    job: str
    user: str
    quota_path: str
    node: str
    status: str
    gpus: float
    gpu_indexes: list[int]
    units: int
    gpu_memory_allocated_mib: float | None
    gpu_memory_used_mib: float | None
    gpu_memory_used_of_mib: float | None
    gpu_util_percent: float | None
    held_since: Timestamp | None
    idle_seconds: int | None
    gpus_idle: float
    gpu_hours_idle: float


class HolderList(ListAnswer, frozen=True):
    items: list[Holder]


class HolderGroup(Json, frozen=True):
    """Holders of one owner, leaf, user or namespace; `name` is "" if it is unknown.

    `kind`, `namespace`, `job`: of an owner. `gpus_idle`: GPUs that have been idle for an hour.
    `gpu_hours_idle`: idle GPU hours of the last day.
    """

    name: str
    kind: str
    namespace: str
    job: str
    pods: int
    gpus: float
    gpus_idle: float
    gpu_hours_idle: float
    gpu_memory_allocated_mib: float | None
    gpu_memory_used_mib: float | None
    gpu_memory_used_of_mib: float | None
    held_since: Timestamp | None


class HolderGroupList(ListAnswer, frozen=True):
    items: list[HolderGroup]
