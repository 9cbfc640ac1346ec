"""What quota reads of a cluster besides pods and nodes: who owns pods, disruption budgets, namespaces."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from fairlead.model.keys import ANNOTATION_SUSPENDED_PRIORITY, LABELS_PREEMPTIBLE
from fairlead.model.moment import Moment
from fairlead.model.node_choice import Expression
from fairlead.model.resources import NOTHING, Amounts

_PRIORITY: Final = re.compile("-?[0-9]{1,10}")
_SWITCH: Final = {"true": True, "false": False}


class Workload(Struct, frozen=True, gc=False):
    """An owner of pods, or the owner of one: ReplicaSet, Job, MPIJob, … A PodGroup, which owns none, is one
    for what it says of its gang.

    `owner`: uid of its own controller, "" = it is topmost. `revision`: of a ReplicaSet in its Deployment.
    `suspended_for`: for which claimant we suspended it; "" = we did not. `is_awaited`: we resumed it just
    now, and pods of it are still to come. `pods` and `request`: of its templates, all replicas together, what
    it would bring when resumed. `least`: so many of its pods run together or not at all; 0 = no gang.
    `late`: what of the request belongs to pods that are made only after the others run, and `late_pods` how
    many of `pods` these are; `least` does not count them. `priority`: of its pods, as far as it is known
    while they are away. `is_preemptible`: as its label says; None = it says nothing.
    """

    kind: str
    api_version: str
    namespace: str
    name: str
    uid: str
    owner: str = ""
    owner_kind: str = ""
    revision: int = 0
    can_suspend: bool = False
    is_suspended: bool = False
    suspended_for: str = ""
    is_awaited: bool = False
    pods: int = 0
    request: Amounts = NOTHING
    least: int = 0
    late: Amounts = NOTHING
    late_pods: int = 0
    priority: int = 0
    is_preemptible: bool | None = None
    user: str = ""
    is_finished: bool = False
    created_at: Moment = 0.0

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


class Budget(Struct, frozen=True, gc=False):
    """A PodDisruptionBudget. `selector`: all must hold; None selects nothing, () every pod of the namespace.

    `allowed`: so many of its pods may be evicted now.
    """

    namespace: str
    name: str
    uid: str = ""
    selector: tuple[Expression, ...] | None = None
    allowed: int = 0

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


class Namespace(Struct, frozen=True, gc=False):
    """`annotations` holds only keys that Fairlead reads."""

    name: str
    uid: str = ""
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    is_ending: bool = False


class LeafGroup(Struct, frozen=True, gc=False):
    """A UserGroup, and the leaf that it names."""

    name: str
    leaf: str


def suspended_priority(annotations: Mapping[str, str | None]) -> int:
    """The priority that the pods of a job had when we suspended it; its template may name a class alone.

    >>> [suspended_priority({ANNOTATION_SUSPENDED_PRIORITY: text}) for text in ("1000", "-10", "9" * 30)]
    [1000, -10, 0]
    """
    text = annotations.get(ANNOTATION_SUSPENDED_PRIORITY) or ""
    return int(text) if _PRIORITY.fullmatch(text) else 0


def preemptible(labels: Mapping[str, str]) -> bool | None:
    """What the label says; None without one, or with one that says neither.

    >>> [preemptible({LABELS_PREEMPTIBLE[0]: text}) for text in ("true", "false", "perhaps")]
    [True, False, None]
    """
    return next((_SWITCH[labels[key]] for key in LABELS_PREEMPTIBLE if labels.get(key) in _SWITCH), None)
