"""An operation: work on the cluster that a person started and that outlives the process at work.

It is a plan, which the person has seen, and the progress of its steps. Every step may be carried
out again: a process that takes the operation over begins with the first step that has not ended.

Specification: docs/spec/operations.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final, Literal

from msgspec import Struct

from fairlead.model.actions import Manifest, ObjectRef
from fairlead.model.moment import Moment

READY_SECONDS: Final = 600.0
"""How long a step waits for readiness, if it names no time (docs/spec/operations.md#steps)."""


class OperationKind(StrEnum):
    """What an operation does, to a data set or to a component."""

    ACCELERATE = "accelerate"
    UNACCELERATE = "unaccelerate"
    PREHEAT = "preheat"
    DEPLOY = "deploy"
    UPGRADE = "upgrade"
    REMOVE = "remove"


INSTALLATION: Final = "installation/"
"""Of the subject of an operation on Fairlead's installation; ids of its parts follow."""


def lock_of(subject: str) -> str:
    """At most one operation of a lock runs at a time: the parts of the installation have one.

    >>> lock_of("installation/quota,people"), lock_of("component/fluid")
    ('installation/', 'component/fluid')
    """
    return INSTALLATION if subject.startswith(INSTALLATION) else subject


class OperationState(StrEnum):
    """`PLANNED`: shown to a person, nothing written yet."""

    PLANNED = "Planned"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    CANCELLED = "Cancelled"

    @property
    def is_ended(self) -> bool:
        return self not in (OperationState.PLANNED, OperationState.RUNNING)


class StepState(StrEnum):
    """`SKIPPED`: the operation ended before it."""

    WAITING = "Waiting"
    RUNNING = "Running"
    DONE = "Done"
    FAILED = "Failed"
    SKIPPED = "Skipped"


class CreateStep(Struct, frozen=True, tag_field="do", tag="create"):
    """Create the object. One that exists is right only if this operation made it: it has the
    annotation `fairlead.io/operation` with the operation's id.
    """

    manifest: Manifest
    plural: str = ""


class ApplyStep(Struct, frozen=True, tag_field="do", tag="apply"):
    """Apply the object on the server.

    `is_forced`: fields of other managers are taken over. `manager`: of the fields, "" = the one of
    operations. `is_alone`: no other step is carried out at the same time, because the order counts.
    """

    manifest: Manifest
    plural: str = ""
    is_forced: bool = False
    manager: str = ""
    is_alone: bool = False


class RemoveStep(Struct, frozen=True, tag_field="do", tag="remove"):
    """Delete the objects, in this order. With a `uid` only the object with this uid is deleted.

    One that does not exist is right. `is_own_only`: an object without this operation's annotation
    stays, which is right, too: another program has made it.
    """

    targets: tuple[ObjectRef, ...]
    is_own_only: bool = False


class ReadyStep(Struct, frozen=True, tag_field="do", tag="ready"):
    """Wait until all objects are ready, as their kinds define it."""

    targets: tuple[ObjectRef, ...]
    seconds: float = READY_SECONDS


class GoneStep(Struct, frozen=True, tag_field="do", tag="gone"):
    """Wait until no object exists any more; one with a `uid` is gone when another has its name."""

    targets: tuple[ObjectRef, ...]
    seconds: float = READY_SECONDS


class HelmStep(Struct, frozen=True, tag_field="do", tag="helm"):
    """Bring a release of Helm into a state.

    `verb`: `install` also upgrades a release of this operation that exists; `rollback` goes to
    `revision`. `chart`: a folder, an archive, or an address (`oci://…`, `https://…`); `version`: of
    the chart. `values`: no secrets, which belong in Secrets that the values name. `seconds`: Helm's
    own time limit.
    """

    verb: Literal["install", "upgrade", "rollback", "uninstall"]
    release: str
    namespace: str
    chart: str = ""
    version: str = ""
    values: Mapping[str, Any] = {}
    revision: int = 0
    seconds: float = READY_SECONDS


class AfterStep(Struct, frozen=True, tag_field="do", tag="after"):
    """Begin another operation, if it is still a plan, and wait until it has succeeded.

    One operation for each of several components: each waits for the one before it, so that the
    start of the last starts all. `operation`: the id; `subject`: of it.
    """

    operation: str
    subject: str


StepWork = CreateStep | ApplyStep | RemoveStep | ReadyStep | GoneStep | HelmStep | AfterStep


class OperationStep(Struct, frozen=True):
    """One step. `title`: what it does, in English, with the names of the objects."""

    title: str
    work: StepWork


class StepProgress(Struct, frozen=True, rename="camel", omit_defaults=True):
    """How far a step is. `message`: what it waits for, or why it failed. `object`: the object in
    hand, as `ObjectRef.title`. `event`: the newest warning about that object.
    """

    state: StepState = StepState.WAITING
    started_at: Moment | None = None
    ended_at: Moment | None = None
    message: str = ""
    object: str = ""
    event: str = ""


class Operation(Struct, frozen=True, kw_only=True):
    """`id`: letters and digits, part of the record's name. `subject`: `dataset/NAMESPACE/NAME`,
    `component/ID` or `installation/ID,…`; at most one operation of its `lock_of` runs at a time.
    `steps` and `progress` have equal lengths. `undo`: steps that follow a failure, in order;
    `undo_progress` as `progress`. `seen`: versions of the objects that the plan was made from, by
    `ObjectRef.title`; "" = absent. `is_cancelled`: a person has asked to cancel; it ends before the
    next step. `holder`: the process at work. `replaced_by`: the command that went on in its place,
    so that it cannot begin again. `version`: of the record, for the next write; "" = not recorded.
    """

    id: str
    kind: OperationKind
    subject: str
    steps: tuple[OperationStep, ...]
    progress: tuple[StepProgress, ...]
    undo: tuple[OperationStep, ...] = ()
    undo_progress: tuple[StepProgress, ...] = ()
    state: OperationState = OperationState.PLANNED
    created_by: str = ""
    created_at: Moment = 0.0
    updated_at: Moment = 0.0
    is_cancelled: bool = False
    message: str = ""
    seen: Mapping[str, str] = {}
    holder: str = ""
    replaced_by: str = ""
    version: str = ""


class HelmRelease(Struct, frozen=True):
    """A release as Helm's record has it. `status`: `deployed`, `failed`, `pending-install`, …

    `operation`: the id of the operation that made the newest revision, from its description (`helm
    rollback` writes its own: ""). `is_own`: an operation made one of its revisions. `deployed`:
    the newest revision that was deployed; 0 = none ever was. `rolled_back_to`: the revision that
    the newest one repeats; 0 = it is no rollback.
    """

    name: str
    namespace: str
    status: str
    revision: int
    chart: str = ""
    chart_version: str = ""
    app_version: str = ""
    operation: str = ""
    deployed: int = 0
    is_own: bool = False
    rolled_back_to: int = 0
