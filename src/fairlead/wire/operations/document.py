"""An operation as a JSON document, for `-o json`, the API and the history
(docs/spec/operations.md#record).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct

from fairlead.model.operations.operation import Operation, OperationStep, StepProgress
from fairlead.model.records.rows import OperationRow

_MILLIS = 1000


class KeptStep(Struct, rename="camel", frozen=True):
    """A step of a history row. Times are epoch seconds."""

    title: str
    state: str
    started_at: float | None = None
    ended_at: float | None = None
    message: str = ""
    object: str = ""
    event: str = ""


def operation_document(operation: Operation) -> dict[str, Any]:
    """Steps without their objects. Times are epoch seconds."""
    return {
        "id": operation.id,
        "kind": operation.kind.value,
        "subject": operation.subject,
        "state": operation.state.value,
        "message": operation.message,
        "createdBy": operation.created_by,
        "createdAt": operation.created_at,
        "updatedAt": operation.updated_at,
        "holder": operation.holder,
        "isCancelled": operation.is_cancelled,
        "steps": step_documents(operation.steps, operation.progress),
        "undo": step_documents(operation.undo, operation.undo_progress),
    }


def step_documents(
    steps: Sequence[OperationStep], progress: Sequence[StepProgress]
) -> list[dict[str, Any]]:
    return [
        {
            "title": step.title,
            "state": each.state.value,
            "startedAt": each.started_at,
            "endedAt": each.ended_at,
            "message": each.message,
            "object": each.object,
            "event": each.event,
        }
        for step, each in zip(steps, progress, strict=True)
    ]


def history_row(operation: Operation) -> OperationRow:
    """Of an operation that has ended."""
    steps = [
        *step_documents(operation.steps, operation.progress),
        *step_documents(operation.undo, operation.undo_progress),
    ]
    return OperationRow(
        operation.id,
        operation.kind.value,
        operation.subject,
        operation.state.value,
        operation.created_by,
        round(operation.created_at * _MILLIS),
        round(operation.updated_at * _MILLIS),
        operation.message,
        msgspec.json.encode(steps).decode(),
    )


def kept_steps(row: OperationRow) -> list[KeptStep]:
    """Steps and undo of a row, in one list. Raises ValueError if they cannot be read."""
    return msgspec.json.decode(row.steps, type=list[KeptStep])
