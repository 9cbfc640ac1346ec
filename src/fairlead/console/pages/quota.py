"""The form of the Quota board: one row per node and managed resource, leaves by namespace.

And of the list of who waits for quota, and why.

Numbers are in `unit` (cores, bytes, GiB, count); unlimited is null. Inner nodes are totals of what
is below them.
"""

from __future__ import annotations

from fairlead.console.pages.envelope import Json, ListAnswer, Sentence, Timestamp


class NamespaceUse(Json, frozen=True):
    namespace: str
    used: float


class UserUse(Json, frozen=True):
    """`user` is null for pods without a known user."""

    user: str | None
    used: float


class QuotaRow(Json, frozen=True):
    """`borrowed` is used above min; `lent` is min that others use. `requested` counts waiting pods
    too.

    `claimed`: promised to pods that wait until there is room. `lost`: of pods that should be gone
    long ago; they still hold it and are charged no longer, so that `used` is less than what is
    held. `by_user` is of leaves. `min` is what counts: less than `min_written` where the cluster
    has less than the mins promise. `over_max` is used above max: nothing is admitted there until it
    is gone. `waiting_pods`, `waiting_jobs`: those that wait and ask for this resource.
    """

    name: str
    path: str
    parent: str
    depth: int
    is_leaf: bool
    namespaces: list[str]
    resource: str
    unit: str
    max: float | None
    min: float
    min_written: float
    over_max: float
    used: float
    requested: float
    borrowed: float
    lent: float
    claimed: float
    lost: float
    waiting_pods: int
    waiting_jobs: int
    by_namespace: list[NamespaceUse]
    by_user: list[UserUse]


class TreeFault(Json, frozen=True):
    """What is wrong with the quota tree.

    `path`: the name of the node; `level`: `error` or `warning`.

    While one of them `stops`, nothing is admitted and nothing evicted.
    """

    path: str
    code: str
    message: str
    level: str
    stops: bool


class QuotaUsage(ListAnswer, frozen=True):
    """`resources`: the managed resources in the order of the tables. `faults`: of the tree."""

    items: list[QuotaRow]
    resources: list[str]
    faults: list[TreeFault]


class QuotaNodeWithoutRoom(Json, frozen=True):
    """A node without room: what is asked of it,
    what is used and promised, and its ceiling, in `unit`.
    """

    node: str
    resource: str
    unit: str
    asks: float
    used: float
    claimed: float
    max: float


class BorrowerRow(Json, frozen=True):
    leaf: str
    resource: str
    unit: str
    over: float


class SparedPod(Json, frozen=True):
    """A pod that would have made room, and why it may not go."""

    pod: str
    why: str


class WaitingUnit(Json, frozen=True):
    """What is admitted all or nothing: a pod, a gang, a suspended job.

    `position`: in its leaf, from 1. `reason` is null where there is room: then only its gate is not
    open yet. `clauses`: those of `message`. `since`: since when it waits. `borrowers`: the
    ten who borrow most.
    """

    unit: str
    namespace: str
    name: str
    pods: int
    leaf: str
    path: str
    position: int
    reason: str | None
    message: str
    clauses: list[Sentence]
    user: str | None
    since: Timestamp | None
    blocked: list[QuotaNodeWithoutRoom]
    borrowers: list[BorrowerRow]
    borrowers_count: int
    spared: list[SparedPod]


class QuotaWaitingList(ListAnswer, frozen=True):
    items: list[WaitingUnit]
