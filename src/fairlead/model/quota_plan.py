"""What a quota plan is made of and what it says: pods as quota sees them, and who is admitted, evicted,
waits, and why.

Amounts are in the units of `model.resources`, times in epoch seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct

from fairlead.model.moment import Moment
from fairlead.model.quota import QuotaNode
from fairlead.model.resources import NOTHING, Amounts


class Reason(StrEnum):
    """Why a unit waits (quota contract 3.4): the reason of its pods' condition
    `fairlead.io/QuotaAdmitted`.
    """

    OVER_MAX = "OverMax"
    WAITING_FOR_IDLE_QUOTA = "WaitingForIdleQuota"
    WAITING_FOR_EVICTIONS = "WaitingForEvictions"
    NEVER_FITS = "NeverFits"
    GANG_INCOMPLETE = "GangIncomplete"
    PDB_BLOCKED = "PDBBlocked"
    NON_PREEMPTIBLE_OVER_MIN = "NonPreemptibleOverMin"
    USER_CAP = "UserCap"


class QuotaPod(Struct, frozen=True):
    """One unfinished pod of a leaf's namespaces.

    `claim_since`: since when its condition says `WaitingForEvictions`, if it does. `gang`: the name of its
    gang in its namespace, of which `gang_size` pods must run together ("" = none). `deployment` and
    `revision`: of the ReplicaSet that owns it. `budgets`: the PodDisruptionBudgets (`namespace/name`) that
    select it.
    """

    namespace: str
    name: str
    uid: str = ""
    request: Amounts = NOTHING
    priority: int = 0
    is_admitted: bool = False
    is_stopping: bool = False
    is_ready: bool = False
    is_preemptible: bool = True
    created_at: Moment = 0.0
    admitted_at: Moment = 0.0
    claim_since: Moment | None = None
    owner: str = ""
    gang: str = ""
    gang_size: int = 0
    deployment: str = ""
    revision: int = 0
    waits_for_surge: bool = False
    user: str = ""
    budgets: tuple[str, ...] = ()
    refused_at: Moment | None = None

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


class QuotaState(Struct, frozen=True):
    """All that a plan follows from. `budgets`: how many more pods each PodDisruptionBudget lets go.

    `capacity`: what schedulable nodes have for pods that quota counts; None = not known, then the tree alone
    binds.
    """

    tree: QuotaNode
    pods: tuple[QuotaPod, ...] = ()
    budgets: Mapping[str, int] = {}
    capacity: Amounts | None = None
    user_caps: Mapping[tuple[str, str], Amounts] = {}
    now: Moment = 0.0
    surge_wait_seconds: float = 60.0
    refusal_seconds: float = 30.0


class QuotaAdmission(Struct, frozen=True):
    pod: QuotaPod
    leaf: str
    is_guaranteed: bool


class QuotaEviction(Struct, frozen=True):
    """`for_unit`: for whom room is made."""

    pod: QuotaPod
    leaf: str
    for_unit: str


class Blocked(Struct, frozen=True):
    """A node that stands in the way: what is asked of it, what is used and promised, and its ceiling."""

    node: str
    resource: str
    asks: int
    used: int
    claimed: int
    max: int


class Borrower(Struct, frozen=True):
    leaf: str
    resource: str
    over: int


class QuotaWaiting(Struct, frozen=True):
    """A unit that was not admitted.

    `position`: among those of its leaf, from 1, in the order in which they are tried.
    """

    unit: str
    leaf: str
    pods: tuple[QuotaPod, ...]
    reason: Reason
    message: str
    position: int = 0
    blocked: tuple[Blocked, ...] = ()
    borrowers: tuple[Borrower, ...] = ()


class QuotaPlan(Struct, frozen=True):
    """What is to be done now, in the order in which it was decided."""

    admit: tuple[QuotaAdmission, ...] = ()
    evict: tuple[QuotaEviction, ...] = ()
    waiting: tuple[QuotaWaiting, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not self.admit and not self.evict
