"""The form of a replay of the past (docs/spec/usage.md#replay)."""

from __future__ import annotations

import msgspec

from fairlead.console.pages.envelope import Json, Timestamp
from fairlead.console.pages.quota_tree import CHANGES_MAX, BoundsChange
from fairlead.console.pages.usage.tables import UsagePeriod
from fairlead.errors import UserError


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


class ReplayOrder(Json, frozen=True, forbid_unknown_fields=True):
    """`period`: such as 24h or 30d, at most 90 days. `nodes`: more or fewer nodes of a model, as
    MODEL=+N. `changes`: of the cluster's tree; `tree`: another tree in their place, an
    ElasticQuotaTree in JSON, "" = none. Without both the trees stay that were in force.
    """

    period: str
    nodes: list[str] = []
    changes: list[BoundsChange] = []
    tree: str = ""


class QuotaReplayState(Json, frozen=True):
    """The last replay that was asked for. `state`: none, running, done, failed or cancelled.

    `id`: "" without a replay. `doing`: reading, in-force (the replay with the trees that were in
    force) or asked. `part`: how much of that is done, from 0 to 1. `has_tree`: a whole tree was
    given. `error`, `hint`: of one that failed. `result`: of one that is done.
    """

    state: str
    id: str = ""
    asked_by: str = ""
    started_at: Timestamp | None = None
    period: str = ""
    nodes: list[str] = []
    changes: list[BoundsChange] = []
    has_tree: bool = False
    doing: str = ""
    part: float = 0.0
    error: str = ""
    hint: str = ""
    result: QuotaReplay | None = None


_NODES_MAX = 100
_FORM = 'send JSON such as {"period": "7d", "nodes": ["NVIDIA-A100-SXM4-80GB=+2"]}'


def parse_replay_order(body: bytes) -> ReplayOrder:
    """Raises UserError for anything that asks for no replay."""
    try:
        order = msgspec.json.decode(body or b"null", type=ReplayOrder)
    except msgspec.DecodeError as error:
        raise UserError(f"this asks for no replay: {error}", _FORM) from error
    for name, count, most in (
        ("changes", len(order.changes), CHANGES_MAX),
        ("nodes", len(order.nodes), _NODES_MAX),
    ):
        if count > most:
            raise UserError(f"{count} {name} are more than {most}", "ask about fewer at once")
    if order.changes and order.tree:
        raise UserError("`changes` and `tree` are given", "give one of them")
    if not (order.changes or order.tree or order.nodes):
        raise UserError("the replay has no change", "give another tree, other nodes, or both")
    return order
