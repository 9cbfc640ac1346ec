"""What quota reads besides pods and nodes: owners of pods, disruption budgets, namespaces."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from fairlead.model.keys import (
    ANNOTATION_LOWERED,
    ANNOTATION_PARALLELISM,
    ANNOTATION_SUSPENDED_FOR,
    ANNOTATION_SUSPENDED_PRIORITY,
    LABELS_PREEMPTIBLE,
)
from fairlead.model.moment import Moment
from fairlead.model.node_choice import Expression
from fairlead.model.resources import NOTHING, Amounts

_PRIORITY: Final = re.compile("-?[0-9]{1,10}")
_SWITCH: Final = {"true": True, "false": False}


class Workload(Struct, frozen=True, gc=False):
    """An owner of pods, or an owner of such an owner: ReplicaSet, Job, MPIJob, … A PodGroup owns no
    pods, and is one for the size of its gang.

    `owner`: uid of its own controller, "" = it is topmost. `revision`: of a ReplicaSet in its
    Deployment. `suspended_for`: the unit for which Fairlead suspended it; "" = it did not.
    `is_awaited`: Fairlead has just resumed it, and its pods are not all created yet. `pods` and
    `request`: of its templates with all replicas, what it brings when resumed. `least`: the number
    of its pods that must run together; 0 = no gang. `late`: the part of the request for pods that
    are created only after the others run, and `late_pods` their number within `pods`; `least` does
    not count them. `priority`: of its pods, as far as it is known while they do not exist.
    `is_preemptible`: from its label; None = it has no such label.

    For a batch Job, whose pods need not run together: `parallelism` from its spec, `each` the
    request of one pod, `held` how many pods it lacks because Fairlead lowered `parallelism`,
    `own_parallelism` its owner's value (0 = it was not lowered). `can_lower`: its controller
    removes pods when `parallelism` is lowered, and counts no failure. `is_gang`: its pods must run
    together after all. `stale`: annotations of Fairlead that are no longer true, because another
    client has changed the job. `has_annotations`: whether it has any annotation.
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
    parallelism: int = 0
    own_parallelism: int = 0
    each: Amounts = NOTHING
    held: int = 0
    can_lower: bool = False
    is_gang: bool = False
    stale: tuple[str, ...] = ()
    has_annotations: bool = False

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def gives_singly(self) -> bool:
        """Whether its pods are admitted and evicted one by one."""
        return self.can_lower and not self.is_gang


class Budget(Struct, frozen=True, gc=False):
    """A PodDisruptionBudget.

    `selector`: all must match; None selects nothing, () every pod of the namespace.

    `allowed`: the number of its pods that may be evicted now.
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
    """`annotations` has only keys that Fairlead reads."""

    name: str
    uid: str = ""
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    is_ending: bool = False


class LeafGroup(Struct, frozen=True, gc=False):
    """A UserGroup, and the leaf that it names."""

    name: str
    leaf: str


def scaled(job: Workload, parallelism: int, own_parallelism: int = 0) -> Workload:
    """A batch Job with another `parallelism`; `own_parallelism`: its owner's, 0 = the same.

    >>> each = {"cpu": 500}
    >>> job = Workload("Job", "batch/v1", "a", "train", "u", pods=4, parallelism=4, each=each)
    >>> lowered = scaled(job, 1, 4)
    >>> lowered.pods, lowered.held, lowered.request, scaled(lowered, 4).held
    (1, 3, {'cpu': 500}, 0)
    """
    most = job.pods + job.held
    pods = min(parallelism, most)
    request = {name: pods * amount for name, amount in job.each.items()} if pods else NOTHING
    held = most - pods if own_parallelism else 0
    return replace(
        job,
        parallelism=parallelism,
        own_parallelism=own_parallelism,
        pods=pods,
        held=held,
        request=request,
    )


def stale_marks(
    annotations: Mapping[str, str | None], *, is_suspended: bool, own_parallelism: int = 0
) -> tuple[str, ...]:
    """Fairlead's annotations that no longer apply: the job runs, or its `parallelism` has changed.

    >>> stale_marks({ANNOTATION_SUSPENDED_FOR: "b/web"}, is_suspended=False)
    ('fairlead.io/suspended-for',)
    >>> stale_marks({ANNOTATION_SUSPENDED_FOR: "b/web"}, is_suspended=True)
    ()
    """
    holds = {
        ANNOTATION_SUSPENDED_FOR: is_suspended,
        ANNOTATION_PARALLELISM: bool(own_parallelism),
        ANNOTATION_LOWERED: bool(own_parallelism),
        ANNOTATION_SUSPENDED_PRIORITY: bool(own_parallelism)
        or (is_suspended and bool(annotations.get(ANNOTATION_SUSPENDED_FOR))),
    }
    return tuple(key for key, it_holds in holds.items() if key in annotations and not it_holds)


def suspended_priority(annotations: Mapping[str, str | None]) -> int:
    """The priority of a job's pods when Fairlead suspended it; its template may only name a class.

    >>> texts = ("1000", "-10", "9" * 30)
    >>> [suspended_priority({ANNOTATION_SUSPENDED_PRIORITY: text}) for text in texts]
    [1000, -10, 0]
    """
    text = annotations.get(ANNOTATION_SUSPENDED_PRIORITY) or ""
    return int(text) if _PRIORITY.fullmatch(text) else 0


def preemptible(labels: Mapping[str, str]) -> bool | None:
    """The value of the label; None without the label, or for another value.

    >>> [preemptible({LABELS_PREEMPTIBLE[0]: text}) for text in ("true", "false", "perhaps")]
    [True, False, None]
    """
    return next(
        (_SWITCH[labels[key]] for key in LABELS_PREEMPTIBLE if labels.get(key) in _SWITCH), None
    )
