"""What can be done to the cluster, as values, and how it ended.

Rules make actions, worlds carry them out (`ports.Cluster.apply`).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

from msgspec import Struct

from fairlead.errors import FairleadError
from fairlead.model.moment import Moment
from fairlead.model.node import Condition, Node
from fairlead.model.pod import GrantsByContainer, Pod
from fairlead.model.quota.plan import QuotaNodeUse
from fairlead.model.quota.tree import QuotaTree, Violation

Manifest = dict[str, Any]
"""An object of Kubernetes as it is written."""


class ObjectRef(Struct, frozen=True):
    """One object. `uid`: this very one, and none that has its name by now.

    `plural`: of its resource; "" = the cluster is asked.
    """

    api_version: str
    kind: str
    name: str
    namespace: str = ""
    uid: str = ""
    plural: str = ""

    @property
    def group_version(self) -> tuple[str, str]:
        """The group is "" for the core API."""
        group, _, version = self.api_version.rpartition("/")
        return group, version


def object_ref(manifest: Manifest, namespace: str = "", plural: str = "") -> ObjectRef:
    """The reference of an object as it is written, or as the cluster made it.

    `namespace` is for one that names none.
    """
    meta = manifest["metadata"]
    place = str(meta.get("namespace") or namespace)
    return ObjectRef(manifest["apiVersion"], manifest["kind"], str(meta.get("name") or ""), place, meta.get("uid") or "", plural)


class CreateObject(Struct, frozen=True):
    """Create it in its own namespace, or else in `namespace`.

    `is_strict`: a field that its schema does not have is refused.
    """

    manifest: Manifest
    namespace: str = ""
    plural: str = ""
    is_strict: bool = False


class PatchObject(Struct, frozen=True):
    """Change it by a merge patch (RFC 7386).

    `subresource`: change that alone, such as `status`; "" = the object. `is_strategic`: by a strategic merge
    patch, which changes single conditions of a built-in kind.
    """

    target: ObjectRef
    patch: Mapping[str, Any]
    subresource: str = ""
    is_strategic: bool = False


class DeleteObject(Struct, frozen=True):
    """Delete it and, in the background, all that belongs to it."""

    target: ObjectRef


class BindPod(Struct, frozen=True):
    """Set the pod's node and write its grants in one call, of this very pod (uid).

    `card_units`: units of the card on which it sits, for annotations that name one card.
    """

    pod: Pod
    node: str
    grants: GrantsByContainer
    card_units: int = 0


class WriteGrants(Struct, frozen=True):
    """Write the grants of a pod that is on its node already. `is_first`: not in the place of damaged ones."""

    pod: Pod
    grants: GrantsByContainer
    card_units: int
    is_first: bool


class TouchPod(Struct, frozen=True):
    """Change an annotation of a waiting pod, so that kube-scheduler tries it again."""

    pod: Pod


class RecordEvent(Struct, frozen=True):
    """A Warning Event about a pod or a node."""

    subject: Pod | Node
    reason: str
    message: str


class AdmitPod(Struct, frozen=True):
    """Take the quota gate away, of this very pod (uid), if it still stands at that place of its gates."""

    target: ObjectRef
    gate: int = 0


class EvictPod(Struct, frozen=True):
    """Ask the eviction API to stop this very pod (uid). A budget that does not allow it: REFUSED, `is_busy`.

    `grace_seconds`: None = as the pod asks. `is_trial`: only ask whether it would be done.
    """

    target: ObjectRef
    grace_seconds: int | None = None
    is_trial: bool = False


class ScaleJob(Struct, frozen=True):
    """Set `spec.parallelism` of this very batch Job (uid) to `count`, if it is `before` now.

    `own`: what its owner wrote; while `count` is another number, annotations keep both. `is_resumed`: let it
    run in the same call, if it is suspended now. `priority`: of its pods. `has_annotations`: whether the Job
    has any.
    """

    target: ObjectRef
    before: int
    count: int
    own: int
    is_resumed: bool = False
    priority: int = 0
    has_annotations: bool = False


class SetPodCondition(Struct, frozen=True):
    """Write one condition of this very pod's status (uid); the others stay."""

    target: ObjectRef
    condition: Condition


class RecordObjectEvent(Struct, frozen=True):
    """An Event about any object. `type`: `Normal` or `Warning`."""

    target: ObjectRef
    reason: str
    message: str
    type: str = "Normal"


class WriteTreeStatus(Struct, frozen=True):
    """Write what the status of the quota tree says (docs/spec/quota.md#status-of-the-tree), of this very
    object (uid).

    `violations`: of the tree as it stands. `not_enforced`: why it is not, "" = it is.
    """

    tree: QuotaTree
    nodes: tuple[QuotaNodeUse, ...] = ()
    violations: tuple[Violation, ...] = ()
    not_enforced: str = ""
    at: Moment = 0.0


ObjectAction = CreateObject | PatchObject | DeleteObject
SharingAction = BindPod | WriteGrants | TouchPod | RecordEvent
QuotaAction = AdmitPod | EvictPod | ScaleJob | SetPodCondition | RecordObjectEvent | WriteTreeStatus | PatchObject | DeleteObject
Action = ObjectAction | SharingAction | QuotaAction


class Result(Enum):
    """How an action ended. `REFUSED`: certainly not done. `UNKNOWN`: it may have been done, or may yet be.

    `THERE`: an object of that name is there already. `GONE`: it is not there any more.
    """

    DONE = "done"
    THERE = "there"
    GONE = "gone"
    REFUSED = "refused"
    UNKNOWN = "unknown"


class Outcome(Struct, frozen=True):
    """How an action ended; `reason` in the words of who refused it, `failure` the same for a person.

    `made`: the object as the cluster made or changed it, where it said so. `is_busy`: the API server said
    "not now" (429), such as for a budget.
    """

    result: Result = Result.DONE
    reason: str = ""
    made: Manifest | None = None
    failure: FairleadError | None = None
    is_busy: bool = False

    def expect(self, *accepted: Result) -> Outcome:
        """This outcome, when it is done or one of those. Raises its failure otherwise."""
        if self.failure is not None and self.result not in accepted:
            raise self.failure
        return self
