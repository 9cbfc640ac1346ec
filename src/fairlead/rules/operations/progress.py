"""How an operation goes on: which step is next, how it ends, and when it may begin.

All functions return new values; a process writes them to the record before and after each step, so
that any other process can go on from the record alone.

Specification: docs/spec/operations.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct, structs

from fairlead.model.actions import object_ref
from fairlead.model.operations.operation import (
    AfterStep,
    ApplyStep,
    CreateStep,
    GoneStep,
    HelmStep,
    Operation,
    OperationKind,
    OperationState,
    OperationStep,
    ReadyStep,
    RemoveStep,
    StepProgress,
    StepState,
)
from fairlead.model.refusal import Refusal

PLAN_SECONDS: Final = 900.0
"""How long a plan is valid."""
KEPT_SECONDS: Final = 7 * 86_400.0
"""How long the record of an ended operation is kept."""
KEPT_OF_SUBJECT: Final = 20
"""Ended records that a subject keeps, whatever their age is."""
MOST_AT_ONCE: Final = 8
"""Applies that run side by side."""
WAITING_ONLY: Final = (ReadyStep, GoneStep, AfterStep)
"""Steps that write nothing on objects: another process may wait as well."""
_TOUCHED: Final = (StepState.RUNNING, StepState.DONE, StepState.FAILED)
"""States of a step that may have written."""
_OVER: Final = (StepState.DONE, StepState.FAILED, StepState.SKIPPED)


class Turn(Struct, frozen=True):
    """One step of an operation: its place among `steps`, or among `undo`."""

    index: int
    is_undo: bool = False


def planned(
    id: str,
    kind: OperationKind,
    subject: str,
    steps: Sequence[OperationStep],
    *,
    undo: Sequence[OperationStep] = (),
    by: str = "",
    now: float,
    seen: Mapping[str, str] | None = None,
) -> Operation:
    """A plan, of which nothing has begun."""
    return Operation(
        id=id,
        kind=kind,
        subject=subject,
        steps=tuple(steps),
        progress=tuple(StepProgress() for _ in steps),
        undo=tuple(undo),
        undo_progress=tuple(StepProgress() for _ in undo),
        created_by=by,
        created_at=now,
        updated_at=now,
        seen=seen or {},
    )


def refuse_start(
    plan: Operation, by: str, now: float, versions: Mapping[str, str]
) -> Refusal | None:
    """Why this plan may not begin. `versions`: as `Operation.seen`, read now."""
    if plan.state is not OperationState.PLANNED:
        return Refusal(f"operation `{plan.id}` is {plan.state.value} already")
    if plan.created_by != by:
        return Refusal(f"`{plan.id}` is the plan of another person; make one of your own")
    if now - plan.created_at > PLAN_SECONDS:
        minutes = PLAN_SECONDS / 60
        return Refusal(f"plan `{plan.id}` is older than {minutes:.0f} minutes; make a new one")
    moved = sorted(title for title, seen in plan.seen.items() if versions.get(title, "") != seen)
    if moved:
        what = ", ".join(moved[:3]) + (f" and {len(moved) - 3} more" if len(moved) > 3 else "")
        return Refusal(f"changed since plan `{plan.id}` was made: {what}; make a new one")
    return None


def predecessor_of(operation: Operation) -> str:
    """The id of the operation that has to succeed before this one works; "" = none."""
    works = (each.work for each in operation.steps)
    return next((each.operation for each in works if isinstance(each, AfterStep)), "")


def begun(operation: Operation, holder: str, now: float) -> Operation:
    """The same, at work in the process `holder`."""
    return structs.replace(
        operation, state=OperationState.RUNNING, holder=holder, updated_at=now, message=""
    )


def is_undoing(operation: Operation) -> bool:
    """Whether only the `undo` steps are left to do: a write has failed, or it is cancelled.

    A failed wait undoes nothing, so that a person can look at what is there, and continue.
    """
    has_failed = any(
        each.state is StepState.FAILED and not isinstance(step.work, WAITING_ONLY)
        for step, each in zip(operation.steps, operation.progress, strict=True)
    )
    return has_failed or (operation.is_cancelled and not _is_all_done(operation))


def next_turn(operation: Operation) -> Turn | None:
    """The step that is to be carried out now; None: the operation has only to end."""
    if is_undoing(operation):
        left = (
            index for index, each in enumerate(operation.undo_progress) if each.state not in _OVER
        )
        return next((Turn(index, is_undo=True) for index in left), None)
    for index, each in enumerate(operation.progress):
        if each.state is StepState.FAILED:
            return None
        if each.state is not StepState.DONE:
            return Turn(index)
    return None


def next_turns(operation: Operation) -> tuple[Turn, ...]:
    """The steps that are to be carried out now, side by side; (): the operation has only to end.

    More than one: applies of one kind of object that follow each other, because the order matters
    only between kinds.
    """
    first = next_turn(operation)
    if first is None:
        return ()
    if first.is_undo:
        return (first,)
    turns = [first]
    kind = _applied_kind(operation.steps[first.index])
    for index in range(first.index + 1, len(operation.steps)):
        is_alike = kind and _applied_kind(operation.steps[index]) == kind
        if not is_alike or len(turns) == MOST_AT_ONCE:
            break
        if operation.progress[index].state is not StepState.DONE:
            turns.append(Turn(index))
    return tuple(turns)


def _applied_kind(step: OperationStep) -> str:
    """ "" if it applies nothing, or nothing beside others."""
    work = step.work
    return str(work.manifest["kind"]) if isinstance(work, ApplyStep) and not work.is_alone else ""


def onward(operation: Operation, now: float) -> Operation:
    """The next steps have begun; without a next step the operation ends."""
    turns = next_turns(operation)
    for turn in turns:
        if progress_of(operation, turn).state is not StepState.RUNNING:
            operation = step_begun(operation, turn, now)
    return operation if turns else ended(operation, now)


def step_of(operation: Operation, turn: Turn) -> OperationStep:
    return (operation.undo if turn.is_undo else operation.steps)[turn.index]


def progress_of(operation: Operation, turn: Turn) -> StepProgress:
    return (operation.undo_progress if turn.is_undo else operation.progress)[turn.index]


def step_begun(operation: Operation, turn: Turn, now: float) -> Operation:
    """A step that a dead process has begun keeps its time."""
    before = progress_of(operation, turn)
    began = now if before.started_at is None else before.started_at
    return _with(operation, turn, StepProgress(StepState.RUNNING, began, None, before.message), now)


def step_noted(
    operation: Operation, turn: Turn, now: float, *, message: str, object: str, event: str = ""
) -> Operation:
    """What the step waits for now."""
    before = progress_of(operation, turn)
    after = structs.replace(before, message=message, object=object, event=event)
    return _with(operation, turn, after, now)


def step_ended(operation: Operation, turn: Turn, now: float, failure: str = "") -> Operation:
    """`failure`: why it failed; "" = it is done."""
    before = progress_of(operation, turn)
    after = structs.replace(
        before,
        state=StepState.FAILED if failure else StepState.DONE,
        ended_at=now,
        message=failure,
        object=before.object if failure else "",
        event=before.event if failure else "",
    )
    return _with(operation, turn, after, now)


def ended(operation: Operation, now: float) -> Operation:
    """The end, after the last turn: SUCCEEDED, FAILED with the reason, or CANCELLED."""
    failures = [
        f"{step.title}: {each.message}"
        for step, each in zip(
            (*operation.steps, *operation.undo),
            (*operation.progress, *operation.undo_progress),
            strict=True,
        )
        if each.state is StepState.FAILED
    ]
    state = OperationState.SUCCEEDED
    if failures:
        state = OperationState.FAILED
    elif operation.is_cancelled and not _is_all_done(operation):
        state = OperationState.CANCELLED
    return structs.replace(
        operation,
        state=state,
        message="; ".join(failures),
        holder="",
        updated_at=now,
        progress=tuple(map(_skipped, operation.progress)),
    )


def cancelled(operation: Operation, now: float) -> Operation:
    """A person has asked to cancel. A plan ends at once, what runs ends before its next step."""
    state = operation.state
    if state is OperationState.PLANNED:
        state = OperationState.CANCELLED
    return structs.replace(operation, is_cancelled=True, state=state, updated_at=now)


def superseded(operation: Operation, now: float, by: str) -> Operation:
    """It cannot begin again, because the command `by` goes on in its place. One that has not ended
    ends, without its `undo` steps.
    """
    if operation.state.is_ended:
        return structs.replace(operation, replaced_by=by)
    return structs.replace(
        operation,
        state=OperationState.CANCELLED,
        is_cancelled=True,
        message=f"`{by}` went on in its place",
        replaced_by=by,
        holder="",
        updated_at=now,
        progress=tuple(map(_ended_early, operation.progress)),
    )


def refuse_again(operation: Operation, others: Iterable[Operation] = ()) -> Refusal | None:
    """Why an ended operation may not begin again: its plan is older than what other work has
    written since to the same objects. `others`: all operations; itself and those that it follows
    do not count.
    """
    cannot = f"operation `{operation.id}` cannot begin again:"
    hint = "its plan is older than what is there now; make a new one"
    if operation.replaced_by:
        return Refusal(f"{cannot} `{operation.replaced_by}` went on in its place", hint)
    by_id = {each.id: each for each in others}
    known, before = {operation.id}, predecessor_of(operation)
    while before and before not in known:
        known.add(before)
        before = predecessor_of(by_id[before]) if before in by_id else ""
    mine = {title for step in operation.steps for title in _written_by(step)}
    for each in by_id.values():
        if each.id in known or each.updated_at <= operation.updated_at:
            continue
        rows = zip((*each.steps, *each.undo), (*each.progress, *each.undo_progress), strict=True)
        touched = (step for step, progress in rows if progress.state in _TOUCHED)
        both = sorted(title for step in touched for title in _written_by(step) if title in mine)
        if both:
            return Refusal(f"{cannot} operation `{each.id}` has changed {both[0]} since", hint)
    return None


def _written_by(step: OperationStep) -> list[str]:
    """Titles of the objects and releases that the step writes."""
    match step.work:
        case CreateStep(manifest=manifest) | ApplyStep(manifest=manifest):
            return [object_ref(manifest).title]
        case RemoveStep(targets=targets):
            return [each.title for each in targets]
        case HelmStep(release=release, namespace=space):
            return [f"release {space}/{release}"]
        case _:
            return []


def resumed(operation: Operation, now: float) -> Operation:
    """An ended operation begins again: at its failed step, or, if its work was undone, at the first
    one. A running one stays as it is.
    """
    if not operation.state.is_ended:
        return operation
    is_undone = any(each.state is not StepState.WAITING for each in operation.undo_progress)
    return structs.replace(
        operation,
        state=OperationState.RUNNING,
        is_cancelled=False,
        message="",
        holder="",
        updated_at=now,
        progress=tuple(
            each if each.state is StepState.DONE and not is_undone else StepProgress()
            for each in operation.progress
        ),
        undo_progress=tuple(StepProgress() for _ in operation.undo),
    )


def records_to_remove(operations: Iterable[Operation], now: float) -> list[str]:
    """Ids of ended operations that are older than a week and not among the newest 20 of their
    subject, and of plans that are not valid any more.
    """
    newest = sorted(operations, key=lambda each: (each.updated_at, each.id), reverse=True)
    counts: dict[str, int] = {}
    found = []
    for each in newest:
        if each.state is OperationState.PLANNED:
            if now - each.created_at > PLAN_SECONDS:
                found.append(each.id)
            continue
        if not each.state.is_ended:
            continue
        count = counts[each.subject] = counts.get(each.subject, 0) + 1
        if count > KEPT_OF_SUBJECT and now - each.updated_at > KEPT_SECONDS:
            found.append(each.id)
    return found


def _is_all_done(operation: Operation) -> bool:
    return all(each.state is StepState.DONE for each in operation.progress)


def _skipped(progress: StepProgress) -> StepProgress:
    if progress.state in _OVER:
        return progress
    return structs.replace(progress, state=StepState.SKIPPED)


def _ended_early(progress: StepProgress) -> StepProgress:
    """A step that runs is not over, and is skipped, too."""
    if progress.state is StepState.RUNNING:
        return structs.replace(progress, state=StepState.SKIPPED)
    return _skipped(progress)


def _with(operation: Operation, turn: Turn, progress: StepProgress, now: float) -> Operation:
    rows = list(operation.undo_progress if turn.is_undo else operation.progress)
    rows[turn.index] = progress
    if turn.is_undo:
        return structs.replace(operation, undo_progress=tuple(rows), updated_at=now)
    return structs.replace(operation, progress=tuple(rows), updated_at=now)


def step_in_hand(operation: Operation) -> str:
    """
    >>> step = OperationStep("Create Dataset a/b", ReadyStep(()))
    >>> step_in_hand(planned("x", OperationKind.ACCELERATE, "dataset/a/b", [step], now=0))
    '0/1'
    """
    done = sum(each.state is StepState.DONE for each in operation.progress)
    count = f"{done}/{len(operation.progress)}"
    rows = zip(
        (*operation.steps, *operation.undo),
        (*operation.progress, *operation.undo_progress),
        strict=True,
    )
    title = next((step.title for step, each in rows if each.state is StepState.RUNNING), "")
    return f"{count} {title}".rstrip()
