"""A quota plan: what is admitted, evicted, suspended or returned; what waits, and why.

Amounts are in the units of `model.resources`, times in epoch seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct

from fairlead.model.moment import Moment
from fairlead.model.quota.clauses import Clauses
from fairlead.model.quota.rows import Workload
from fairlead.model.quota.state import QuotaPod
from fairlead.model.quota.tree import Violation
from fairlead.model.resources import NOTHING, Amounts


class Reason(StrEnum):
    """Why a unit waits: the reason of its pods' condition `fairlead.io/QuotaAdmitted`.

    Specification: docs/spec/quota.md#conditions-and-sentences.
    """

    OVER_MAX = "OverMax"
    WAITING_FOR_IDLE_QUOTA = "WaitingForIdleQuota"
    QUEUED_BEHIND = "QueuedBehind"
    WAITING_FOR_EVICTIONS = "WaitingForEvictions"
    NEVER_FITS = "NeverFits"
    GANG_INCOMPLETE = "GangIncomplete"
    GATED_BY_OTHERS = "GatedByOthers"
    PDB_BLOCKED = "PDBBlocked"
    NON_PREEMPTIBLE_OVER_MIN = "NonPreemptibleOverMin"
    USER_CAP = "UserCap"
    NO_FIT_ON_NODES = "NoFitOnNodes"
    TREE_INVALID = "TreeInvalid"


class QuotaAdmission(Struct, frozen=True):
    """`message`: what the leaf uses together with this pod; text
    of the pod's condition and Event.
    """

    pod: QuotaPod
    leaf: str
    is_guaranteed: bool
    message: str = ""


class EvictionMethod(StrEnum):
    """How a victim is stopped: with the eviction API, by suspending its topmost workload, or by
    lowering the `parallelism` of its Job.
    """

    EVICT = "evict"
    SUSPEND = "suspend"
    LOWER = "lower"


class QuotaEviction(Struct, frozen=True):
    """An eviction.

    `for_unit`: the gang or pod for which room is made. `is_drain`: no room is made for a unit; the
    quota node that `for_unit` names is above its max and is drained. `workload`: what `method`
    suspends or lowers.

    `grace_seconds`: how long the pod may take to stop; None = the pod's own grace period.
    `message`: the sentence for the pod's owner: which leaf takes back how much of which min, and
    why this pod was chosen.
    """

    pod: QuotaPod
    leaf: str
    for_unit: str
    method: EvictionMethod = EvictionMethod.EVICT
    workload: Workload | None = None
    frees: Amounts = NOTHING
    grace_seconds: float | None = None
    message: str = ""
    is_drain: bool = False


class QuotaClaim(Struct, frozen=True):
    """Room that is being made, or is reserved, for a unit.

    `is_new`: its pods' conditions do not show it yet.
    """

    unit: str
    leaf: str
    request: Amounts
    pods: tuple[QuotaPod, ...] = ()
    is_new: bool = False


class QuotaReturn(Struct, frozen=True):
    """A pod that was admitted and never bound.

    It is deleted; its controller creates it again, gated.

    Nothing would create a bare pod again, so a bare pod stays and only gets an Event:
    `is_event_only`.
    """

    pod: QuotaPod
    leaf: str
    is_event_only: bool = False


class QuotaResume(Struct, frozen=True):
    """A job that Fairlead suspended or lowered.

    `pods`: number of further pods of a batch Job; 0 = all.
    """

    workload: Workload
    leaf: str
    pods: int = 0


class ProtectedPod(Struct, frozen=True):
    """A pod (`namespace/name`) that would make room, and why it may not be evicted."""

    pod: str
    why: str


class FullQuotaNode(Struct, frozen=True):
    """A quota node without room: what is requested, what is used and reserved, and its ceiling."""

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


class MissingAmount(Struct, frozen=True, gc=False):
    """How much more of a resource must become free for a unit, and where.

    `kind`: the limit that lacks room: `max` of a quota node, `min` of a leaf (for pods that are not
    preemptible), `cap` of a user in a leaf, `node` of the cluster, or `nodes`, all of them
    together. `at`: its name, "" for `nodes`.
    """

    kind: str
    at: str
    resource: str
    amount: int


class QuotaWaiting(Struct, frozen=True):
    """A unit that was not admitted.

    `position`: among those of its leaf, from 1, in the order in which they are tried. `overall`:
    the same among those of all leaves, 0 = only one leaf was asked for. The order is that of
    trying, not of admission: a unit that does not fit is passed over
    (docs/spec/quota.md#order-of-candidates). `lacks`: how much more must become free where it is
    `blocked`. `workload`: of a suspended job, which waits without pods. `clauses`: the parts of
    `message`, for translation; () = `message` has no such parts.
    """

    unit: str
    leaf: str
    pods: tuple[QuotaPod, ...]
    reason: Reason
    message: str
    position: int = 0
    blocked: tuple[FullQuotaNode, ...] = ()
    borrowers: tuple[Borrower, ...] = ()
    spared: tuple[ProtectedPod, ...] = ()
    workload: Workload | None = None
    overall: int = 0
    lacks: tuple[MissingAmount, ...] = ()
    clauses: Clauses = ()

    @property
    def priority(self) -> int:
        """The highest priority of its pods; for a suspended job, the priority that its pods had."""
        job = self.workload
        return max(
            (pod.priority for pod in self.pods), default=job.priority if job is not None else 0
        )

    @property
    def since(self) -> Moment | None:
        """When its oldest pod, or the job that waits without pods, was created."""
        made = [pod.created_at for pod in self.pods if pod.created_at]
        return min(
            made, default=(self.workload.created_at if self.workload is not None else 0.0) or None
        )

    @property
    def reason_since(self) -> Moment | None:
        """Since when its pods' conditions have its reason; None = they do not have it (yet)."""
        times = [
            pod.condition_since
            for pod in self.pods
            if pod.condition_reason == self.reason and pod.condition_since is not None
        ]
        return min(times, default=None)

    @property
    def pod_count(self) -> int:
        """The number of pods that it would bring.

        A lowered batch Job waits once for each pod that it lacks.
        """
        job = self.workload
        if self.pods or job is None:
            return len(self.pods)
        return 1 if job.gives_singly or (job.held and not job.is_suspended) else job.pods


class QuotaNodeUse(Struct, frozen=True):
    """The status of one quota node (docs/spec/quota.md#status-of-the-tree).

    `used`: of admitted and unfinished pods, including those that stop. `request`: with what waits.
    `claimed`: reserved. `lost`: of pods that do not stop, included in nothing else. `guaranteed`
    and `borrowed` are computed for the node itself. `counted_min`: resources whose min counts as
    less than written, because the cluster has less than the mins promise, with the amount that
    counts (docs/spec/quota.md#capacity-and-counted-mins); `guaranteed` and `borrowed` follow it.
    `over_max`: what it uses above its max.

    `pods`: the number of pods in `used`. `waiting_by_reason`: by the reason of their condition; ""
    = none yet; `waiting_by_resource`: those that ask for it. `used_by_namespace` has every
    namespace of a leaf, with or without use, and is empty for inner nodes, as is `used_by_user`,
    where "" is for pods without a user.
    """

    name: str
    namespaces: tuple[str, ...] = ()
    children: tuple[str, ...] = ()
    used: Amounts = NOTHING
    request: Amounts = NOTHING
    guaranteed: Amounts = NOTHING
    borrowed: Amounts = NOTHING
    claimed: Amounts = NOTHING
    lost: Amounts = NOTHING
    firm_used: Amounts = NOTHING
    firm_request: Amounts = NOTHING
    waiting_units: int = 0
    waiting_pods: int = 0
    pods: int = 0
    waiting_by_reason: Mapping[str, int] = {}
    waiting_by_resource: Mapping[str, int] = {}
    counted_min: Amounts = NOTHING
    over_max: Amounts = NOTHING
    used_by_namespace: Mapping[str, Amounts] = {}
    used_by_user: Mapping[str, Amounts] = {}


class QuotaPlan(Struct, frozen=True):
    """What to do now, in the order in which it was decided."""

    admit: tuple[QuotaAdmission, ...] = ()
    evict: tuple[QuotaEviction, ...] = ()
    waiting: tuple[QuotaWaiting, ...] = ()
    claims: tuple[QuotaClaim, ...] = ()
    returned: tuple[QuotaReturn, ...] = ()
    resume: tuple[QuotaResume, ...] = ()
    nodes: tuple[QuotaNodeUse, ...] = ()
    violations: tuple[Violation, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether nothing is to be done."""
        return not (self.admit or self.evict or self.returned or self.resume)

    @property
    def disrupted(self) -> int:
        """The number of pods that lose their work: all evicted pods, each gang member counted."""
        return len({each.pod.uid or each.pod.key for each in self.evict})
