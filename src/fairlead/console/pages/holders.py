"""The form of the list of holders: every pod that holds a GPU or a part of one, and who they are together."""

from __future__ import annotations

from fairlead.console.pages.envelope import Json, ListAnswer, Timestamp


class Holder(Json, frozen=True):
    """`owner_kind`, `owner`: what made the pod, "" for one that a person made.

    `job`: of a training job's pod, `type/name`.
    `gpus` are cards' worth, fractions for shared ones. `gpu_indexes` is empty where nobody knows which.
    `held_since`: when it was bound. `idle_seconds`: how long all its cards together have done nothing for it,
    0 when it is seen to use one, null where nobody knows. `gpus_idle`: of its GPUs, those that have done
    nothing for it for an hour; it may use the others. `gpu_hours_idle`: of the last day, in which it did
    nothing with what it holds; without a Prometheus of the last hour, and of the idleness that goes on.
    `gpu_memory_used_of_mib`: what it has of the cards that tell how much it uses.
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
    """Holders of one owner, leaf, user or namespace together; `name` is "" for those of nobody who is known.

    `kind`, `namespace`, `job`: of an owner. `gpus_idle`: those that have done nothing for an hour.
    `gpu_hours_idle`: of the last day, in which they did nothing with what they hold.
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
