"""The input of a quota plan: pods with the fields that quota reads, and the cluster around them.

Amounts are in the units of `model.resources`, times in epoch seconds.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from fairlead.model.moment import Moment
from fairlead.model.node import Taint
from fairlead.model.node_choice import ANYWHERE, NodeChoice
from fairlead.model.quota.rows import Workload
from fairlead.model.quota.tree import QuotaNode, QuotaSettings, Violation
from fairlead.model.resources import NOTHING, Amounts


class QuotaPod(Struct, frozen=True, gc=False):
    """One unfinished pod of a leaf's namespaces.

    `request`: all that it asks for, managed by the tree or not. `claim_since`: since when its
    condition has the reason `WaitingForEvictions`; None = another reason. `gang`: the name of its
    gang in its namespace, of which `gang_size` pods must run together ("" = none). `owner`: uid of
    the topmost workload that it belongs to. `deployment` (uid) and `revision`: of the ReplicaSet
    that owns it. `budgets`: the PodDisruptionBudgets (`namespace/name`) that select it. `node`:
    where it is bound. `condition_reason`, `condition_message` and `condition_since`: its condition
    now. `admitted_at`: infinity = a moment ago, the exact time is unknown. `card_units`: GPU memory
    that it needs on one card. `choice`: known while it has no node. `removal`: of a Job's pod; the
    lower, the sooner its controller removes it. `is_refused`: kube-scheduler has reported that no
    node takes it. `gated_by`: scheduling gates of other programs on the pod, "" = none.
    `never_preempts`: its `preemptionPolicy` is `Never`.
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
    stopping_at: Moment | None = None
    grace_seconds: float | None = None
    node: str = ""
    choice: NodeChoice = ANYWHERE
    card_units: int = 0
    condition_reason: str = ""
    condition_message: str = ""
    condition_since: Moment | None = None
    removal: tuple[float, ...] = ()
    is_refused: bool = False
    gated_by: str = ""
    never_preempts: bool = False

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


class NodeRoom(Struct, frozen=True, gc=False):
    """A cluster node, with what is needed to decide whether a pod fits on it.

    `taken`: requests of pods that quota does not count; pods that it counts are in the state with
    their node. `holes`: free units of GPU memory of each of its shared cards, or () where cards are
    not distinguished. `is_schedulable`: ready, or not ready for less than five minutes, and not
    cordoned.
    """

    name: str
    allocatable: Amounts = NOTHING
    taken: Amounts = NOTHING
    labels: Mapping[str, str] = {}
    taints: tuple[Taint, ...] = ()
    is_schedulable: bool = True
    holes: tuple[int, ...] = ()


class QuotaState(Struct, frozen=True):
    """`budgets`: how many more pods each PodDisruptionBudget lets go, by `namespace/name`.

    `nodes`: None = unknown, then only `capacity` and the tree are limits. `capacity`: what
    schedulable nodes have for pods that quota counts; None = computed from `nodes`, or unknown.
    `workloads` by uid. `violations`: of the tree; one with `stops` makes the plan empty.
    `scheduled_at`: the last time that any pod of the cluster was bound.
    """

    tree: QuotaNode
    pods: tuple[QuotaPod, ...] = ()
    budgets: Mapping[str, int] = {}
    capacity: Amounts | None = None
    user_caps: Mapping[tuple[str, str], Amounts] = {}
    now: Moment = 0.0
    settings: QuotaSettings = QuotaSettings()
    nodes: tuple[NodeRoom, ...] | None = None
    workloads: Mapping[str, Workload] = {}
    violations: tuple[Violation, ...] = ()
    scheduled_at: Moment = 0.0
