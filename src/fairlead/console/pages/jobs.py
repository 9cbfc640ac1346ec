"""The form of the Training jobs board: one row per job, newest first, and everything about one job.

`status` is the board's word (Pending, Running, Succeeded, Failed), `state` the exact one that
`arena list` prints; requested GPUs come from the spec and are right before any pod exists.
"""

from __future__ import annotations

from fairlead.console.pages.envelope import Envelope, Json, ListAnswer, Sentence, Timestamp
from fairlead.console.pages.events import EventRow


class Waiting(Json, frozen=True):
    """`message`: the source's message, unchanged, or `sentence` in English if Fairlead found the
    reason.

    `room`: for a pod that shares GPUs, the answers of all nodes; "" = one has room. `sentence`:
    Fairlead's reason; null if it knows no more than the source. `clauses`: the clauses of a message
    of quota; empty for other messages.
    """

    reason: str
    message: str
    clauses: list[Sentence]
    room: str
    sentence: Sentence | None


class InstanceCounts(Json, frozen=True):
    """`unknown`: on unreachable nodes; they may or may not run."""

    desired: int
    running: int
    unknown: int
    pending: int
    succeeded: int
    failed: int


class JobRow(Json, frozen=True):
    """`live`: the object still exists; a job that was deleted is shown from the ledger, with
    `deleted_at`. `held_seconds`: since the first pod of those that hold
    something was bound, null while none does; a job may have waited long before. `waiting`: of a
    pending job, and of one that restarts while none of its pods runs. `gpu_memory_used_of_mib`: its
    memory on the cards that report its use.

    `gpu_seconds`, `core_seconds`, `cost` and `list_cost` need the ledger: null without it.
    """

    namespace: str
    name: str
    type: str
    status: str
    state: str
    waiting: Waiting | None
    duration_seconds: int
    held_seconds: int | None
    gpus_requested: float
    gpus_allocated: float
    gpu_memory_requested_mib: float | None
    gpu_memory_allocated_mib: float | None
    gpu_memory_used_mib: float | None
    gpu_memory_used_of_mib: float | None
    gpu_util_percent: float | None
    uid: str
    api_version: str
    user: str
    quota_path: str
    created_at: Timestamp | None
    started_at: Timestamp | None
    finished_at: Timestamp | None
    deleted_at: Timestamp | None
    instances: InstanceCounts
    nodes: list[str]
    gpu_seconds: float | None
    core_seconds: float | None
    cost: str | None
    list_cost: str | None
    live: bool


class JobList(ListAnswer, frozen=True):
    """`missing_types`: types of jobs that this cluster does not
    serve; one asked for is a warning.
    """

    items: list[JobRow]
    missing_types: list[str]


class Instance(Json, frozen=True):
    """One pod of the job. `age_seconds` is the instance's own.

    First start to last finish, or waiting since it was made. `restarts`: null of a deleted job.
    """

    name: str
    role: str
    status: str
    node: str
    ip: str
    gpus: float
    gpu_indexes: list[int]
    gpu_uuids: list[str]
    gpu_memory_allocated_mib: float | None
    gpu_memory_used_mib: float | None
    gpu_memory_used_of_mib: float | None
    gpu_util_percent: float | None
    restarts: int | None
    age_seconds: int
    is_chief: bool
    waiting: Waiting | None


class LifeStep(Json, frozen=True):
    """One step of a job's life.

    `step`: created, pods (made over a minute after the job, as those that replace others),
    admitted, scheduled, images, running, restarted or ended. `seconds`: how long it lasted, to the
    next step or to now; null of the end. `count`: pods made later, scheduled, pods that have run
    (null where none is left), or restarts; `of`: pods that there are. `status`: the board's word at
    the end, else "".
    """

    step: str
    at: Timestamp
    seconds: int | None
    count: int | None = None
    of: int | None = None
    status: str = ""


class JobDetail(Envelope, frozen=True):
    """`life`: its known steps, in order; steps with an unknown time are omitted."""

    job: JobRow
    life: list[LifeStep]
    instances: list[Instance]
    events: list[EventRow]


class InstanceLog(Json, frozen=True):
    """A container that may have a log.

    `begun`: whether it has one; otherwise `why` is the reason, and `sentence` the same if
    translatable.
    """

    pod: str
    container: str
    begun: bool
    running: bool
    restarts: int
    why: str
    sentence: Sentence | None


class InstanceList(Envelope, frozen=True):
    """`logs`: containers of all instances, the chief's first."""

    items: list[Instance]
    logs: list[InstanceLog]


class JobEvents(Envelope, frozen=True):
    items: list[EventRow]


class JobWhy(Envelope, frozen=True):
    """`waiting`: null of a job that does not wait."""

    waiting: Waiting | None


class JobManifest(Envelope, frozen=True):
    """The job's object as YAML. `redacted`: where a value was taken out, as paths."""

    yaml: str
    redacted: list[str]
