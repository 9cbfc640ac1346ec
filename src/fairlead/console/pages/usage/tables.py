"""The forms of usage, idle GPUs, and the cost of a job (docs/spec/usage.md).

Money is a decimal string with six places in the list's currency, null without a price. Hours are
amounts times time: a GPU that is held for a day is 24 GPU-hours, also if nothing runs on it.
"""

from __future__ import annotations

from fairlead.console.pages.envelope import Envelope, Json, ListAnswer, Sentence, Timestamp


class UsageFigures(Json, frozen=True):
    """`idle_percent`: idle / (busy + idle), null if neither is known; `unknown_percent`: of the
    GPU-hours. `unpriced_gpu_hours`: GPU-hours of the time without a price, which no cost contains.
    `saved_percent`: 100 × (1 − cost / list cost).
    """

    gpu_hours: float
    gpu_memory_gib_hours: float
    core_hours: float
    memory_gib_hours: float
    idle_percent: float | None
    unknown_percent: float | None
    pods: int
    cost: str | None
    list_cost: str | None
    saved_percent: float | None
    unpriced_gpu_hours: float


class UsageRow(UsageFigures, frozen=True):
    """`name`: of the user, namespace, leaf, job or model; "" = of none. `namespace`, `type`, `uid`:
    of a job, else "".
    """

    name: str
    namespace: str
    type: str
    uid: str


class UnrecordedTime(Json, frozen=True):
    """A time in which no recorder ran."""

    start: Timestamp
    end: Timestamp


class UnpricedClass(Json, frozen=True):
    """Nodes of one price class without a price. `labels`: what a price may match."""

    labels: dict[str, str]
    node_hours: float


class UsagePeriod(Json, frozen=True):
    """From `start` to `end`, as far as the ledger has it: `until`, and without `gaps`. `name`: as
    it was asked for. `zone`: of billing days.
    """

    name: str
    start: Timestamp
    end: Timestamp
    until: Timestamp
    zone: str
    gaps: list[UnrecordedTime]


class UsageList(ListAnswer, frozen=True):
    """`by`: what a row is: user, namespace, leaf, job or model. `totals`: of all rows before
    filters. `currency`: "" = there are no prices.
    """

    by: str
    period: UsagePeriod
    currency: str
    totals: UsageFigures
    unpriced: list[UnpricedClass]
    items: list[UsageRow]


class GpuMoney(Json, frozen=True):
    """What the GPUs of a node were, in GPU-hours, and what each part cost (null: no price).

    `used`, `idle` and `unknown` were held by pods; `free`, `stranded` and `broken` were not.
    """

    gpu_hours: float
    used_gpu_hours: float
    idle_gpu_hours: float
    unknown_gpu_hours: float
    free_gpu_hours: float
    stranded_gpu_hours: float
    broken_gpu_hours: float
    cost: str | None
    used_cost: str | None
    idle_cost: str | None
    unknown_cost: str | None
    free_cost: str | None
    stranded_cost: str | None
    broken_cost: str | None


class NodeGpuMoney(GpuMoney, frozen=True):
    """Of one node. `lacking`: what waiting pods lack there while GPUs are stranded; `holders`: the
    pods, as `namespace/name`, that hold most of it.
    """

    node: str
    model: str
    lacking: str
    holders: list[str]


class IdleRow(Json, frozen=True):
    """GPUs for which money is spent and on which nothing runs.

    `reason`: idle, stranded, broken, free or unknown. Rows of `idle` and `unknown` are pods; the
    others are nodes, whose owner fields are "". `gpus`: now. `since`: the beginning of the idle
    time, or of the period if it was idle before. `gpu_hours`, `cost`: of the period. `advice`: what
    to do.
    """

    reason: str
    namespace: str
    pod: str
    node: str
    model: str
    user: str
    leaf: str
    job: str
    job_type: str
    gpus: float
    since: Timestamp | None
    gpu_hours: float
    cost: str | None
    holders: list[str]
    advice: Sentence


class IdleList(ListAnswer, frozen=True):
    """`nodes`, `totals`: how the GPU money of the period is split, by node; a researcher gets
    neither, because capacity belongs to all.
    """

    period: UsagePeriod
    currency: str
    nodes: list[NodeGpuMoney]
    totals: GpuMoney | None
    items: list[IdleRow]


class PodCost(Json, frozen=True):
    """One pod on one node with unchanged amounts.

    `status`: running, finished, deleted, changed (another row follows) or inferred (it ended while
    no recorder ran). `end`: null = it still holds this. `instance_type`: of the node, "" = unknown.
    `per_hour`, `list_per_hour`: the pod's cost per hour with the newest price of its time.
    """

    pod: str
    node: str
    status: str
    start: Timestamp
    end: Timestamp | None
    seconds: float
    gpus: float
    gpu_memory_mib: float
    cores: float
    memory_mib: float
    model: str
    instance_type: str
    per_hour: str | None
    list_per_hour: str | None
    cost: str | None
    list_cost: str | None
    saved_percent: float | None


class JobCost(Envelope, frozen=True):
    """The cost of one job, as far as the ledger goes back. `figures.pods`: its pods.

    `others`: uids of earlier jobs of the same name, the newest first.
    """

    uid: str
    namespace: str
    name: str
    type: str
    user: str
    leaf: str
    start: Timestamp | None
    end: Timestamp | None
    currency: str
    figures: UsageFigures
    pods: list[PodCost]
    others: list[str]
