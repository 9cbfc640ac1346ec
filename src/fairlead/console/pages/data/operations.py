"""The forms of the page Operations (docs/spec/operations.md)."""

from __future__ import annotations

from fairlead.console.pages.envelope import Envelope, Json, ListAnswer, Timestamp


class ListedOperation(Json, frozen=True):
    """`subject`: `dataset/NAMESPACE/NAME` or `component/ID`. `step`: the title of the step at work,
    of the failed one, or ""; `steps_done` of `steps_total` are done. `holder`: the process at work.
    """

    id: str
    kind: str
    subject: str
    state: str
    step: str
    steps_done: int
    steps_total: int
    created_by: str
    created_at: Timestamp | None
    updated_at: Timestamp | None
    holder: str
    message: str


class OperationList(ListAnswer, frozen=True):
    items: list[ListedOperation]


class StepRow(Json, frozen=True):
    """`state`: Waiting, Running, Done, Failed, Skipped. `message`: what it waits for, or why it
    failed. `object`: the object in hand; `event`: its newest warning.
    """

    title: str
    state: str
    started_at: Timestamp | None
    ended_at: Timestamp | None
    message: str
    object: str
    event: str


class OperationDetail(Envelope, frozen=True):
    """`undo`: what follows a failed write or a cancellation. `can_cancel`, `can_retry`: now;
    `is_cancelled`: it ends before its next step.
    """

    row: ListedOperation
    steps: list[StepRow]
    undo: list[StepRow]
    is_cancelled: bool
    can_cancel: bool
    can_retry: bool


class EndedOperation(Json, frozen=True):
    """An operation of the history, whose record is gone or will go. `state`: Succeeded, Failed or
    Cancelled.
    """

    id: str
    kind: str
    subject: str
    state: str
    created_by: str
    created_at: Timestamp
    ended_at: Timestamp
    message: str


class EndedOperationPage(Json, frozen=True):
    """The newest first. `before`: what the next page is asked with, "" = there is none."""

    generated_at: Timestamp
    size: int
    before: str
    items: list[EndedOperation]


class PlanOrder(Json, frozen=True):
    """Starts a plan, whose `plan_id` is the id of the operation."""

    plan_id: str


class Begun(Json, frozen=True):
    """An operation that was accepted (202). The header `Location` has its address."""

    operation: str
