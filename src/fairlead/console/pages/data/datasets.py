"""The forms of the page Datasets: rows, one data set, and the orders that change them."""

from __future__ import annotations

from fairlead.console.pages.envelope import Envelope, FieldFault, Json, ListAnswer, Timestamp
from fairlead.console.pages.writing.preview import Effect


class DataSetRow(Json, frozen=True):
    """One data set of Fluid, or one claim (docs/spec/datasets.md#data-list).

    `kind`: Dataset or PersistentVolumeClaim. `source`: what it mounts, or the volume of a claim.
    `accelerated`: a data set, or a claim that `accelerated_by` cache. `status`: Ready or NotReady;
    `phase`: the object's own word. `operation`: the id of the operation at work on it, "" = none;
    only administrators see it. `users`: how many jobs and single pods mount it, null while pods
    are not known; `used_by`: the first five of them by name.
    """

    namespace: str
    name: str
    kind: str
    source: list[str]
    accelerated: bool
    accelerated_by: list[str]
    status: str
    phase: str
    message: str
    cached_percent: float | None
    size_bytes: int | None
    files: int | None
    runtime: str
    users: int | None
    used_by: list[str]
    created_at: Timestamp | None
    operation: str


class DataSetList(ListAnswer, frozen=True):
    items: list[DataSetRow]


class DataSetMount(Json, frozen=True):
    """`point`: `pvc://CLAIM/PATH`, `s3://…`, … `options`: `NAME=VALUE`, where a value that may be
    secret is hidden. `secrets`: `OPTION: SECRET/KEY`, never a value.
    """

    point: str
    path: str
    read_only: bool
    options: list[str]
    secrets: list[str]


class DataSetPart(Json, frozen=True):
    """The master, the workers or the fuse of a runtime."""

    name: str
    phase: str
    reason: str


class DataSetRuntime(Json, frozen=True):
    """`ready` of `wanted` workers are ready."""

    kind: str
    ready: int
    wanted: int
    parts: list[DataSetPart]


class DataSetCache(Json, frozen=True):
    """As Fluid reports it."""

    cached_bytes: int | None
    capacity_bytes: int | None
    hit_percent: float | None
    local_hit_percent: float | None
    remote_hit_percent: float | None


class DataSetCondition(Json, frozen=True):
    type: str
    status: str
    reason: str
    message: str
    at: Timestamp | None


class DataSetPreheat(Json, frozen=True):
    """A DataLoad. `duration`: Fluid's own text."""

    name: str
    phase: str
    paths: list[str]
    schedule: str
    duration: str
    message: str
    created_at: Timestamp | None


class DataSetEvent(Json, frozen=True):
    """An Event of type Warning."""

    reason: str
    message: str
    object: str
    at: Timestamp | None


class DataSetPod(Json, frozen=True):
    """A pod that mounts the claim and has not ended. `node`: "" while it waits."""

    name: str
    node: str


class DataSetUser(Json, frozen=True):
    """A job, another owner of pods, or (`kind` is Pod) a pod that a person made. `job`: `type/name`
    of a training job, which has a page; "" = it is none.
    """

    namespace: str
    kind: str
    name: str
    job: str
    pods: list[DataSetPod]


class DataSetDetail(Envelope, frozen=True):
    """`row`: the data set, or the claim where there is no data set of the name. `cache`: null of a
    claim. `users`: what mounts it. `blockers`: why it may not end, empty = it may. `unread`:
    what may not be read.
    """

    row: DataSetRow
    mounts: list[DataSetMount]
    runtimes: list[DataSetRuntime]
    cache: DataSetCache | None
    conditions: list[DataSetCondition]
    finalizers: list[str]
    preheats: list[DataSetPreheat]
    events: list[DataSetEvent]
    users: list[DataSetUser]
    blockers: list[str]
    unread: list[str]


class DataSetBlockers(Envelope, frozen=True):
    """Why the data set may not end now; empty = it may."""

    blockers: list[str]


class AccelerationOrder(Json, frozen=True):
    """How a claim is accelerated. What is "" or 0 gets the default. `quota`: of each worker, such
    as `20Gi`; `folder`: of the claim; `medium`: MEM or SSD.
    """

    name: str = ""
    folder: str = ""
    workers: int = 0
    medium: str = "MEM"
    quota: str = ""


class DataSetOrder(Json, frozen=True):
    """A data set over another source. `mount`: its URI, such as `oss://bucket/folder`; a claim is
    `pvc://CLAIM/FOLDER`. `endpoint`: of the object store. `secret`: the Secret with both keys of
    the object store, "" = none; `id_key`, `secret_key`: their names in it, never the keys
    themselves. What else is "" or 0 gets the default, as in `AccelerationOrder`.
    """

    namespace: str
    name: str
    mount: str
    endpoint: str = ""
    secret: str = ""
    id_key: str = ""
    secret_key: str = ""
    workers: int = 0
    medium: str = "MEM"
    quota: str = ""


class AccelerationCheck(Json, frozen=True):
    """One check before a write. `state`: ok, warn, fail, or unknown (it may not be read). `mend`:
    what to do, "" = nothing.
    """

    check: str
    state: str
    sentence: str
    mend: str


class ChosenAcceleration(Json, frozen=True):
    """An order with the defaults that apply. `node`: where master and worker run, "" = on any."""

    name: str
    folder: str
    workers: int
    medium: str
    quota: str
    node: str


class AccelerationPreview(Json, frozen=True):
    """What `dryRun=true` answers: nothing was written. `checks`: all, whatever the first finds.
    `chosen`: null if a field cannot be read. `line`: the equal command. `manifests`: the objects as
    YAML.
    """

    valid: bool
    fields: list[FieldFault]
    effects: list[Effect]
    checks: list[AccelerationCheck]
    chosen: ChosenAcceleration | None
    line: str
    manifests: str


class PreheatOrder(Json, frozen=True):
    """Which folders of a data set are read into its cache. `paths`: in the data set, all of it if
    empty. `replicas`: copies of each file in the cache. `schedule`: of cron, "" = once.
    """

    paths: list[str] = []
    replicas: int = 1
    schedule: str = ""


class ScaleOrder(Json, frozen=True):
    """`workers`: caches, one on a node; at least 1."""

    workers: int


class DataSetScaled(Json, frozen=True):
    """`workers`: how many its owner now asks for."""

    namespace: str
    name: str
    workers: int


class ScalePreview(Json, frozen=True):
    """What `dryRun=true` answers: nothing was written. `checks`: all. `line`: the equal command."""

    valid: bool
    fields: list[FieldFault]
    effects: list[Effect]
    checks: list[AccelerationCheck]
    line: str
