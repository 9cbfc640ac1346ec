"""What can be done to the cluster (actions), and how an action ended (outcomes), as values.

Rules make actions; a real or simulated cluster carries them out (`ports.Cluster.apply`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any

from msgspec import Struct

from fairlead.errors import FairleadError
from fairlead.model.moment import Moment
from fairlead.model.node import Condition, Node
from fairlead.model.pod import GrantsByContainer, Pod
from fairlead.model.quota.plan import QuotaNodeUse
from fairlead.model.quota.tree import AdmittedUse, QuotaTree, Violation

Manifest = dict[str, Any]
"""A Kubernetes object as it is written in YAML or JSON."""


class ObjectRef(Struct, frozen=True):
    """One object. `uid`: the object with this uid, not a later one of the same name; "" = any.

    `plural`: of its resource; "" = the cluster is asked for it.
    """

    api_version: str
    kind: str
    name: str
    namespace: str = ""
    uid: str = ""
    plural: str = ""

    @property
    def group_version(self) -> tuple[str, str]:
        """API group and version; the group is "" for the core API."""
        group, _, version = self.api_version.rpartition("/")
        return group, version

    @property
    def identity(self) -> tuple[str, str, str, str]:
        """What identifies the object in every version of its API."""
        return self.group_version[0], self.kind, self.namespace, self.name

    @property
    def title(self) -> str:
        """
        >>> ObjectRef("v1", "Secret", "tls", "team").title, ObjectRef("v1", "Node", "a").title
        ('Secret team/tls', 'Node a')
        """
        place = f"{self.namespace}/" if self.namespace else ""
        return f"{self.kind} {place}{self.name}"


def kind_titles(targets: Iterable[ObjectRef]) -> list[str]:
    """Each kind once, with its API, in the order of the alphabet.

    >>> kind_titles([ObjectRef("apps/v1", "DaemonSet", name) for name in ("a", "b")])
    ['DaemonSet of apps/v1']
    """
    return sorted({f"{each.kind} of {each.api_version}" for each in targets})


def object_ref(manifest: Manifest, namespace: str = "", plural: str = "") -> ObjectRef:
    """The reference of an object, from its manifest.

    `namespace`: for a manifest that names none.
    """
    meta = manifest["metadata"]
    place = str(meta.get("namespace") or namespace)
    return ObjectRef(
        manifest["apiVersion"],
        manifest["kind"],
        str(meta.get("name") or ""),
        place,
        meta.get("uid") or "",
        plural,
    )


class CreateObject(Struct, frozen=True):
    """Create the object in its own namespace, or else in `namespace`.

    `is_strict`: the API server refuses a field that the schema does not have. `is_trial`: a dry
    run, which creates nothing.
    """

    manifest: Manifest
    namespace: str = ""
    plural: str = ""
    is_strict: bool = False
    is_trial: bool = False


class PatchObject(Struct, frozen=True):
    """Change the object by a merge patch (RFC 7386).

    `subresource`: change that part only, such as `status`; "" = the object. `is_strategic`: use a
    strategic merge patch, which can change single conditions of a built-in kind.
    """

    target: ObjectRef
    patch: Mapping[str, Any]
    subresource: str = ""
    is_strategic: bool = False


class DeleteObject(Struct, frozen=True):
    """Delete the object and, in the background, all objects that it owns."""

    target: ObjectRef


class BindPod(Struct, frozen=True):
    """Bind this pod (by uid) to the node and write its grants in one call.

    `card_units`: units of the pod's card, for annotations that name one card.
    """

    pod: Pod
    node: str
    grants: GrantsByContainer
    card_units: int = 0


class WriteGrants(Struct, frozen=True):
    """Write the grants of a pod that is bound already.

    `is_first`: they replace no damaged grants.
    """

    pod: Pod
    grants: GrantsByContainer
    card_units: int
    is_first: bool


class TouchPod(Struct, frozen=True):
    """Change an annotation of a waiting pod, so that kube-scheduler tries the pod again."""

    pod: Pod


class RecordEvent(Struct, frozen=True):
    """Record a Warning Event about a pod or a node."""

    subject: Pod | Node
    reason: str
    message: str


class AdmitPod(Struct, frozen=True):
    """Remove the quota gate of this pod (by uid), if it is still at index `gate` of its gates."""

    target: ObjectRef
    gate: int = 0


class EvictPod(Struct, frozen=True):
    """Evict this pod (by uid) with the eviction API.

    If a budget forbids it: REFUSED with `is_busy`.

    `grace_seconds`: None = the pod's own. `is_trial`: a dry run.
    """

    target: ObjectRef
    grace_seconds: int | None = None
    is_trial: bool = False


class ScaleJob(Struct, frozen=True):
    """Set `spec.parallelism` of this batch Job (by uid) to `count`, if it is `before` now.

    `own`: the owner's value; while `count` differs from it, annotations keep both. `is_resumed`:
    also resume a suspended Job in the same call. `priority`: of its pods. `has_annotations`:
    whether the Job has any annotation.
    """

    target: ObjectRef
    before: int
    count: int
    own: int
    is_resumed: bool = False
    priority: int = 0
    has_annotations: bool = False


class SetPodCondition(Struct, frozen=True):
    """Write one condition in the status of this pod (by uid); other conditions stay."""

    target: ObjectRef
    condition: Condition


class RecordObjectEvent(Struct, frozen=True):
    """Record an Event about any object. `type`: `Normal` or `Warning`."""

    target: ObjectRef
    reason: str
    message: str
    type: str = "Normal"


class WriteTreeStatus(Struct, frozen=True):
    """Write the status of the quota tree with this uid (docs/spec/quota.md#status-of-the-tree).

    `violations`: of the present tree. `not_enforced`: why the tree is not enforced, "" = it is.
    `users`: what each user has admitted in each leaf.
    """

    tree: QuotaTree
    nodes: tuple[QuotaNodeUse, ...] = ()
    violations: tuple[Violation, ...] = ()
    not_enforced: str = ""
    at: Moment = 0.0
    users: tuple[AdmittedUse, ...] = ()


ObjectAction = CreateObject | PatchObject | DeleteObject
SharingAction = BindPod | WriteGrants | TouchPod | RecordEvent
QuotaAction = (
    AdmitPod
    | EvictPod
    | ScaleJob
    | SetPodCondition
    | RecordObjectEvent
    | WriteTreeStatus
    | PatchObject
    | DeleteObject
)
Action = ObjectAction | SharingAction | QuotaAction


class Result(Enum):
    """How an action ended.

    `REFUSED`: certainly not done. `UNKNOWN`: it may have been done, or may still be.

    `THERE`: an object of that name exists already. `GONE`: the object does not exist any more.
    """

    DONE = "done"
    THERE = "there"
    GONE = "gone"
    REFUSED = "refused"
    UNKNOWN = "unknown"


class Outcome(Struct, frozen=True):
    """How an action ended.

    `reason`: the message of the API server, `failure`: the same for a person.

    `made`: the object after the action, if the API server returned it. `is_busy`: the API server
    answered "not now" (429), for example because of a budget.
    """

    result: Result = Result.DONE
    reason: str = ""
    made: Manifest | None = None
    failure: FairleadError | None = None
    is_busy: bool = False

    def expect(self, *accepted: Result) -> Outcome:
        """This outcome if its result is DONE or in `accepted`. Raises its failure otherwise."""
        if self.failure is not None and self.result not in accepted:
            raise self.failure
        return self
