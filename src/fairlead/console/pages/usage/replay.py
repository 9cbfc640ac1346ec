"""The form of a replay of the past (docs/spec/usage.md#replay)."""

from __future__ import annotations

from fairlead.console.pages.envelope import Json
from fairlead.console.pages.usage.tables import UsagePeriod


class ReplayFigures(Json, frozen=True):
    """`pods`: places of workloads. Hours are rounded to four places, `waited_mean_seconds` and
    `waited_p95_seconds` to thousandths. `waiting`: pods that wait at the end. `lost_gpu_hours`:
    what evicted pods had held, and hold again. `idle_cost`: null without a price.
    """

    pods: int
    waited_hours: float
    waited_mean_seconds: float
    waited_p95_seconds: float
    waiting: int
    evictions: int
    gpu_hours: float
    idle_gpu_hours: float
    lost_gpu_hours: float
    idle_cost: str | None


class ReplayLeaf(Json, frozen=True):
    """`leaf`: full name, "" in totals. `happened`: by the ledger; `in_force`: the replay with the
    trees that were in force; `asked`: the replay that was asked for. Null: it has no such leaf.
    """

    leaf: str
    happened: ReplayFigures | None
    in_force: ReplayFigures | None
    asked: ReplayFigures | None


class ReplayFree(Json, frozen=True):
    """GPUs that no pod held. `cost`: null without a price."""

    gpu_hours: float
    cost: str | None


class ReplayDifference(Json, frozen=True):
    cause: str
    pods: int
    example: str


class ReplayFidelity(Json, frozen=True):
    """How far the replay with the trees in force is from what happened."""

    happened: int
    replayed: int
    both: int
    within_tolerance: int
    tolerance_seconds: float
    out_of_order: int
    median_seconds: float
    worst_seconds: float
    worst_pod: str
    differences: list[ReplayDifference]


class QuotaReplay(Json, frozen=True):
    """`nodes`: the changes that were asked for, as MODEL=+N."""

    period: UsagePeriod
    nodes: list[str]
    currency: str
    leaves: list[ReplayLeaf]
    totals: ReplayLeaf
    free_happened: ReplayFree
    free_in_force: ReplayFree
    free_asked: ReplayFree
    fidelity: ReplayFidelity
