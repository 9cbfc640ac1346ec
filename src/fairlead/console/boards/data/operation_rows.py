"""The rows of the page Operations, and the steps of one operation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from fairlead.console.boards.rows import Entry, RowSet, choices, lowered
from fairlead.console.pages.data.operations import (
    EndedOperation,
    ListedOperation,
    OperationDetail,
    StepRow,
)
from fairlead.console.pages.envelope import (
    Sentence,
    Warning,
    counted,
    exact_timestamp,
    timestamp,
)
from fairlead.model.operations.operation import (
    CreateStep,
    Operation,
    OperationState,
    OperationStep,
    StepProgress,
    StepState,
)
from fairlead.model.records.rows import OperationRow
from fairlead.rules.operations.progress import refuse_again
from fairlead.wire.data.fluid import ACCELERATES
from fairlead.wire.operations.document import kept_steps

_SHOWN: Final = (StepState.RUNNING, StepState.FAILED)


def operation_rows(operations: Iterable[Operation]) -> RowSet[ListedOperation]:
    """In the order in which they are given."""
    rows = [operation_row(each) for each in operations]
    facets = {
        "kind": choices(row.kind for row in rows),
        "state": [str(word) for word in OperationState if any(row.state == word for row in rows)],
        "subject": choices(row.subject for row in rows),
        "user": choices(row.created_by for row in rows),
    }
    return RowSet(ListedOperation, [_entry(row) for row in rows], facets, ties="")


def operations_sentence(rows: Sequence[ListedOperation]) -> Sentence:
    """
    >>> operations_sentence([]).text
    'There are no operations.'
    """
    if not rows:
        return Sentence("operations-none", {}, "There are no operations.")
    running = sum(row.state == OperationState.RUNNING for row in rows)
    failed = sum(row.state == OperationState.FAILED for row in rows)
    text = f"{counted(len(rows), 'operation')}: {running} running, {failed} failed."
    return Sentence("operations", {"all": len(rows), "running": running, "failed": failed}, text)


def operation_row(operation: Operation) -> ListedOperation:
    pairs = zip(
        (*operation.steps, *operation.undo),
        (*operation.progress, *operation.undo_progress),
        strict=True,
    )
    shown = [step.title for step, progress in pairs if progress.state in _SHOWN]
    return ListedOperation(
        id=operation.id,
        kind=str(operation.kind),
        subject=operation.subject,
        state=str(operation.state),
        step=shown[-1] if shown else "",
        steps_done=sum(each.state is StepState.DONE for each in operation.progress),
        steps_total=len(operation.steps),
        created_by=operation.created_by,
        created_at=timestamp(operation.created_at),
        updated_at=timestamp(operation.updated_at),
        holder=operation.holder,
        message=operation.message,
    )


def operations_at_work(operations: Iterable[Operation]) -> dict[str, str]:
    """The ids of running operations, by subject, and by `claim/NAMESPACE/NAME` of a claim whose
    data set an operation makes.
    """
    found = {}
    for each in operations:
        if each.state is not OperationState.RUNNING:
            continue
        found[each.subject] = each.id
        for step in each.steps:
            meta = step.work.manifest["metadata"] if isinstance(step.work, CreateStep) else {}
            claim = (meta.get("annotations") or {}).get(ACCELERATES)
            if claim:
                found[f"claim/{meta['namespace']}/{claim}"] = each.id
    return found


def operation_detail(
    operation: Operation,
    others: Iterable[Operation],
    envelope: tuple[str, bool, str, list[Warning]],
) -> OperationDetail:
    """`others`: all operations, which decide whether it may begin again."""
    return OperationDetail(
        *envelope,
        row=operation_row(operation),
        steps=_steps(operation.steps, operation.progress),
        undo=_steps(operation.undo, operation.undo_progress),
        is_cancelled=operation.is_cancelled,
        can_cancel=can_cancel(operation),
        can_retry=can_retry(operation, others),
    )


def ended_operation(row: OperationRow) -> EndedOperation:
    """Of the history."""
    return EndedOperation(
        id=row.id,
        kind=row.kind,
        subject=row.subject,
        state=row.state,
        created_by=row.created_by,
        created_at=exact_timestamp(row.created_at / 1000),
        ended_at=exact_timestamp(row.ended_at / 1000),
        message=row.message,
    )


def ended_detail(
    row: OperationRow, envelope: tuple[str, bool, str, list[Warning]]
) -> OperationDetail:
    """Of an operation that only the history has, so nothing can be done with it any more. Its
    `undo` steps stand at the end of its steps.
    """
    steps = [
        StepRow(
            title=each.title,
            state=each.state,
            started_at=timestamp(each.started_at),
            ended_at=timestamp(each.ended_at),
            message=each.message,
            object=each.object,
            event=each.event,
        )
        for each in kept_steps(row)
    ]
    return OperationDetail(
        *envelope,
        row=ListedOperation(
            id=row.id,
            kind=row.kind,
            subject=row.subject,
            state=row.state,
            step=next((each.title for each in steps if each.state == StepState.FAILED), ""),
            steps_done=sum(each.state == StepState.DONE for each in steps),
            steps_total=len(steps),
            created_by=row.created_by,
            created_at=timestamp(row.created_at / 1000),
            updated_at=timestamp(row.ended_at / 1000),
            holder="",
            message=row.message,
        ),
        steps=steps,
        undo=[],
        is_cancelled=row.state == OperationState.CANCELLED,
        can_cancel=False,
        can_retry=False,
    )


def can_cancel(operation: Operation) -> bool:
    return not operation.state.is_ended and not operation.is_cancelled


def can_retry(operation: Operation, others: Iterable[Operation]) -> bool:
    """`others`: all operations."""
    is_retried = operation.state in (OperationState.FAILED, OperationState.CANCELLED)
    return is_retried and refuse_again(operation, others) is None


def _steps(steps: Sequence[OperationStep], progress: Sequence[StepProgress]) -> list[StepRow]:
    return [
        StepRow(
            title=step.title,
            state=str(each.state),
            started_at=timestamp(each.started_at),
            ended_at=timestamp(each.ended_at),
            message=each.message,
            object=each.object,
            event=each.event,
        )
        for step, each in zip(steps, progress, strict=True)
    ]


def _entry(row: ListedOperation) -> Entry[ListedOperation]:
    words = [row.id, row.kind, row.subject, row.state, row.created_by, row.step, row.message]
    answers = {
        "kind": lowered(row.kind),
        "state": lowered(row.state),
        "subject": lowered(row.subject),
        "user": lowered(row.created_by),
    }
    return Entry(row, "\n".join(words).lower(), answers)
