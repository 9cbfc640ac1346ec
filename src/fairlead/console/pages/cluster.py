"""The form of the Cluster board: eight panels for the operator, then what needs attention.

Allocated memory counts an exclusive card whole and a shared one by its grants; utilization is the
mean over the GPUs that report, not over nodes.
"""

from __future__ import annotations

from fairlead.console.pages.envelope import Envelope, Json, Sentence, Timestamp


class GpuNodeCounts(Json, frozen=True):
    """`unhealthy`: Ready is not True.
    `faulty`: at least one broken card, whatever the node reports.
    """

    total: int
    allocated: int
    unhealthy: int
    faulty: int


class GpuCounts(Json, frozen=True):
    total: int
    allocated: float
    unhealthy: int


class GpuMemory(Json, frozen=True):
    """`used_of_mib`: total memory of the GPUs that report used
    memory; that of others is unknown.
    """

    total_mib: float | None
    allocated_mib: float | None
    used_mib: float | None
    used_of_mib: float | None


class JobCounts(Json, frozen=True):
    """Suspended, queuing and submitted jobs are pending;
    restarting and scaling ones are running.
    """

    running: int
    pending: int
    succeeded: int
    failed: int


class Consumer(Json, frozen=True):
    namespace: str
    gpus: float
    gpu_memory_mib: float | None
    jobs: int


class StarvedLeaf(Json, frozen=True):
    """A quota leaf below its guaranteed minimum while pods of it wait. `min`, `used` in `unit`."""

    path: str
    resource: str
    unit: str
    min: float
    used: float
    waiting_pods: int


class FaultyGpu(Json, frozen=True):
    """`index` is null if a node offers fewer GPUs than it has and
    it is unknown which are missing.
    """

    node: str
    index: int | None
    uuid: str
    model: str
    reason: str


class RecentWarning(Json, frozen=True):
    """Warnings of one reason about objects of one kind and namespace, represented by the newest.

    `count` of all of them; `objects`: how many they are about. `job` is `type/name`, or empty;
    `node` a name.
    """

    at: Timestamp | None
    namespace: str
    object: str
    reason: str
    message: str
    count: int
    objects: int
    job: str
    node: str


class Pool(Json, frozen=True):
    """All GPUs of one model and mode.

    `gpus_free`: whole cards that could be had now, the cells that the map shows as free.
    `gpus_free_unnamed`: more free ones among cards with unknown holders. `largest_free_mib`: the
    most that a pod can get on one shared card now; null for whole cards.
    """

    model: str
    mode: str
    nodes: int
    gpus: int
    gpus_allocated: float
    gpus_free: int
    gpus_free_unnamed: int
    largest_free_mib: float | None
    gpus_unhealthy: int


class AttentionObject(Json, frozen=True):
    """One thing in trouble. `kind`: node, gpu, pod or leaf; the name of a gpu is its node's.

    `job`: of a pod that belongs to one, as `type/name`. `index`: of a gpu.
    """

    kind: str
    namespace: str
    name: str
    node: str = ""
    job: str = ""
    index: int | None = None


class AttentionLine(Json, frozen=True):
    """`level`: broken, waiting or wasted. `objects`: those in trouble the longest; `more` are not
    named.

    `count` may be a fraction: parts of GPUs that are idle. `since`: the first of them, null =
    unknown. `command`: what to ask next about the first of them. `why`: of things that wait, why
    the first does, in our words where we have some, else in the source's.
    """

    kind: str
    level: str
    count: float
    sentence: Sentence
    since: Timestamp | None
    objects: list[AttentionObject]
    more: int
    command: str
    why: Sentence | None = None


class Overview(Envelope, frozen=True):
    """`attention`: what needs attention, the worst first."""

    sentence: Sentence
    attention: list[AttentionLine]
    gpu_nodes: GpuNodeCounts
    gpus: GpuCounts
    gpu_memory: GpuMemory
    gpu_util_percent: float | None
    gpus_reporting: int
    jobs: JobCounts
    idle_gpus: float
    pools: list[Pool]
    top_consumers: list[Consumer]
    starved_leaves: list[StarvedLeaf]
    faulty_gpus: list[FaultyGpu]
    recent_warnings: list[RecentWarning]
