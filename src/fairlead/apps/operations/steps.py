"""One attempt at one step of an operation (docs/spec/operations.md#steps).

An attempt is short: a step that waits is attempted again and again. Refusals of the API server are
failures; no answer is none, until the time of the step is over.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, assert_never

from msgspec import Struct, structs

from fairlead.errors import (
    AlreadyExists,
    ChangedMeanwhile,
    FairleadError,
    Forbidden,
    InvalidObject,
    NotFound,
    OutsideError,
    UserError,
)
from fairlead.model.actions import Manifest, ObjectRef, object_ref
from fairlead.model.jobs.datasets import DATA_LOAD_KIND, DATASET_KIND
from fairlead.model.keys import ANNOTATION_OPERATION
from fairlead.model.operations.data_parts import fluid_ref
from fairlead.model.operations.operation import (
    AfterStep,
    ApplyStep,
    CreateStep,
    GoneStep,
    HelmStep,
    OperationState,
    ReadyStep,
    RemoveStep,
    StepProgress,
    StepWork,
)
from fairlead.ports import Helm, OperationCluster, OperationRecords
from fairlead.rules.data.preheat import load_progress
from fairlead.rules.operations.progress import Turn, begun
from fairlead.rules.operations.readiness import readiness, still_there
from fairlead.rules.operations.releases import release_turn

WRITE_SECONDS: Final = 120.0
"""How long a write is tried while the API server does not answer."""
UNSERVED_SECONDS: Final = 30.0
"""How long a write is tried while its kind or namespace does not exist: both may be new."""
_REFUSED: Final = (Forbidden, InvalidObject, UserError)


class Attempt(Struct, frozen=True):
    """`is_over`: the step is done, or, with a `failure`, has failed. Else `message`, `object` and
    `event` as in `StepProgress`.
    """

    is_over: bool
    failure: str = ""
    message: str = ""
    object: str = ""
    event: str = ""

    def is_news(self, shown: StepProgress) -> bool:
        return (self.message, self.object, self.event) != (
            shown.message,
            shown.object,
            shown.event,
        )


_DONE: Final = Attempt(is_over=True)


class StepWorker:
    """`helm`: None = there is no Helm here, which fails the steps that need it. `records`: of other
    operations, which a step may wait for. `now`: epoch seconds.
    """

    def __init__(
        self,
        cluster: OperationCluster,
        helm: Helm | None,
        records: OperationRecords,
        now: Callable[[], float],
    ) -> None:
        self._cluster = cluster
        self._helm = helm
        self._records = records
        self._now = now

    async def attempt(self, work: StepWork, operation: str, turn: Turn, waited: float) -> Attempt:
        """`operation`: the id. `waited`: seconds since this process began the step."""
        try:
            return await self._attempt(work, operation, turn, waited)
        except _REFUSED as error:
            return _failed(error)
        except NotFound as error:
            if isinstance(work, ReadyStep | GoneStep) or waited < UNSERVED_SECONDS:
                return _unanswered(work, error, waited)
            return _failed(error)
        except OutsideError as error:
            return _unanswered(work, error, waited)

    async def _attempt(self, work: StepWork, operation: str, turn: Turn, waited: float) -> Attempt:
        match work:
            case CreateStep():
                return await self._create(work, operation)
            case ApplyStep():
                return await self._apply(work)
            case RemoveStep():
                return await self._remove(work, operation, turn)
            case ReadyStep():
                return await self._await_ready(work, waited)
            case GoneStep():
                return await self._await_gone(work, waited)
            case HelmStep():
                return await self._release(work, operation, turn)
            case AfterStep():
                return await self._await_other(work)
            case _:
                assert_never(work)

    async def _create(self, work: CreateStep, operation: str) -> Attempt:
        meta = work.manifest["metadata"]
        marks = {**(meta.get("annotations") or {}), ANNOTATION_OPERATION: operation}
        manifest = {**work.manifest, "metadata": {**meta, "annotations": marks}}
        target = object_ref(manifest, plural=work.plural)
        try:
            await self._cluster.create(manifest, work.plural)
        except AlreadyExists:
            found = await self._cluster.get(target)
            if found is None:
                return Attempt(is_over=False, message="exists and is going", object=target.title)
            if not _is_made_by(found, operation):
                return Attempt(
                    is_over=True, failure=f"{target.title} exists and was made by another program"
                )
        return _DONE

    async def _apply(self, work: ApplyStep) -> Attempt:
        try:
            await self._cluster.apply(
                work.manifest, work.plural, is_forced=work.is_forced, manager=work.manager
            )
        except ChangedMeanwhile as error:
            return _failed(error)
        return _DONE

    async def _remove(self, work: RemoveStep, operation: str, turn: Turn) -> Attempt:
        for target in work.targets:
            named = target
            if turn.is_undo or work.is_own_only:
                found = await self._cluster.get(target)
                if found is None or not _is_made_by(found, operation):
                    continue
                named = structs.replace(target, uid=found["metadata"]["uid"])
            await self._cluster.remove(named)
        return _DONE

    async def _await_ready(self, work: ReadyStep, waited: float) -> Attempt:
        for target in work.targets:
            found = await self._cluster.get(target)
            state = readiness(found)
            if state.is_ready:
                continue
            if not state.is_failed and found is not None:
                state = readiness(found, await self._cluster.pods_of(target))
            message = f"{target.title}: {state.message}"
            if state.is_failed:
                return Attempt(is_over=True, failure=message)
            lacking = state.message
            if target.kind == DATA_LOAD_KIND and (cached := await self._cached(found)):
                lacking = f"{lacking}; {cached}"
            return await self._waiting(target, lacking, waited, work.seconds)
        return _DONE

    async def _cached(self, load: Manifest | None) -> str:
        """How much of the data set of a DataLoad is cached; "" = it is not reported."""
        if load is None:
            return ""
        name = ((load.get("spec") or {}).get("dataset") or {}).get("name") or ""
        target = fluid_ref(DATASET_KIND, load["metadata"].get("namespace") or "", name)
        return load_progress(await self._cluster.get(target)) if name else ""

    async def _await_gone(self, work: GoneStep, waited: float) -> Attempt:
        for target in work.targets:
            lacking = still_there(await self._found(target), target)
            if lacking:
                return await self._waiting(target, lacking, waited, work.seconds)
        return _DONE

    async def _found(self, target: ObjectRef) -> Manifest | None:
        try:
            return await self._cluster.get(target)
        except NotFound:  # the kind is not served any more
            return None

    async def _await_other(self, work: AfterStep) -> Attempt:
        """It has no time of its own: the other operation ends, or another process ends it."""
        found = await self._records.get(work.operation)
        if found is None:
            return Attempt(
                is_over=True, failure=f"operation `{work.operation}` does not exist any more"
            )
        if found.state is OperationState.SUCCEEDED:
            return _DONE
        if found.state.is_ended:
            what = f"operation `{found.id}` ({found.subject}) is {found.state.value}"
            return Attempt(is_over=True, failure=f"{what}; carry it out again first, then this one")
        if found.state is OperationState.PLANNED:
            await self._records.save(begun(found, "", self._now()))
        what = f"operation `{found.id}` is at work"
        return Attempt(is_over=False, message=what, object=found.subject)

    async def _waiting(
        self, target: ObjectRef, message: str, waited: float, seconds: float
    ) -> Attempt:
        event = await self._cluster.newest_warning(target)
        if waited >= seconds:
            more = f"; newest warning: {event}" if event else ""
            what = f"{target.title} after {seconds:.0f} s: {message}{more}"
            return Attempt(is_over=True, failure=what)
        return Attempt(is_over=False, message=message, object=target.title, event=event)

    async def _release(self, work: HelmStep, operation: str, turn: Turn) -> Attempt:
        if self._helm is None:
            raise UserError("there is no `helm` here", "install Helm 3 or 4 on the PATH")
        found = await self._helm.release(work.release, work.namespace)
        wanted = release_turn(work, found, operation, is_undo=turn.is_undo)
        match wanted.do:
            case "done":
                return _DONE
            case "refuse":
                return Attempt(is_over=True, failure=wanted.message)
            case "run":
                await self._helm.carry_out(work, operation)
                return _DONE
            case "rollback" | "uninstall":
                clearing = structs.replace(work, verb=wanted.do, revision=wanted.revision)
                await self._helm.carry_out(clearing, operation)
                what = f"release {work.namespace}/{work.release}"
                return Attempt(is_over=False, message=f"{what}: cleared what was left of it")


def _is_made_by(found: Manifest, operation: str) -> bool:
    return (found["metadata"].get("annotations") or {}).get(ANNOTATION_OPERATION) == operation


def _failed(error: FairleadError) -> Attempt:
    return Attempt(is_over=True, failure=error.log_line)


def _unanswered(work: StepWork, error: OutsideError, waited: float) -> Attempt:
    """A failed Helm is a failure: it reports so itself, after its own time."""
    if error.system == "helm":
        return _failed(error)
    if isinstance(work, AfterStep):
        return Attempt(is_over=False, message=error.what, object=work.subject)
    seconds = work.seconds if isinstance(work, ReadyStep | GoneStep) else WRITE_SECONDS
    if waited >= seconds:
        return _failed(error)
    return Attempt(is_over=False, message=error.what)
