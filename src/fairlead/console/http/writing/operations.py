"""Writes of the page Operations: a plan starts, an operation is cancelled or carried out again.

Specification: docs/spec/console.md#writing-operations.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable
from typing import Final

from starlette.requests import Request

from fairlead.console.boards.data.operation_rows import can_cancel, can_retry
from fairlead.console.http.answers import Refused
from fairlead.console.http.data.operation_desk import OperationDesk
from fairlead.console.http.data.record_changes import Change
from fairlead.console.http.subjects import subject_of
from fairlead.console.http.writing.frame import Blocked, PlannedWrite, Written
from fairlead.console.pages.data.operations import Begun, PlanOrder
from fairlead.console.pages.endpoints import BASE
from fairlead.console.pages.writing.preview import Effect
from fairlead.errors import OutsideError
from fairlead.model.operations.operation import Operation, OperationState
from fairlead.model.records.audit import AuditTarget
from fairlead.rules.operations.progress import (
    begun,
    cancelled,
    refuse_again,
    refuse_start,
    resumed,
)

KIND: Final = "Operation"


def begun_answer(id: str) -> Written:
    """202: the operation is accepted, and its address."""
    return Written(Begun(id), 202, f"{BASE}/operations/{id}")


async def plan_start(desk: OperationDesk, request: Request, order: PlanOrder) -> PlannedWrite:
    """Starts a plan of the same person, and the plans that it follows. Raises Refused: 404 for an
    unknown one and for another person's.
    """
    by = _name(request)
    plan = await desk.one(order.plan_id, by)
    chain = await desk.chain(plan, by)
    reason = ""
    for each in chain:
        refusal = refuse_start(each, by, desk.now(), await desk.versions_of(each))
        if refusal is not None:
            reason = refusal.reason
        elif (other := await desk.at_work_on(each.subject)) is not None:
            reason = f"operation `{other.id}` is at work on `{each.subject}`"
        if reason:
            break

    def started(now: Operation) -> Operation:
        if now.version != plan.version:
            raise _moved(now)
        return begun(now, "", desk.now())

    async def follow_up() -> None:
        """The last one begins those before it, too; this is sooner."""
        for each in chain[:-1]:
            with contextlib.suppress(OutsideError):
                await desk.change(each, _begun_once(desk))

    return await _planned(desk, plan, started, "started", reason, "make a new plan", follow_up)


def _begun_once(desk: OperationDesk) -> Change:
    def change(now: Operation) -> Operation:
        return begun(now, "", desk.now()) if now.state is OperationState.PLANNED else now

    return change


async def plan_cancel(desk: OperationDesk, request: Request) -> PlannedWrite:
    """Cancels a plan, or what runs before its next step."""
    found = await desk.one(request.path_params["id"], _name(request))

    def stopped(now: Operation) -> Operation:
        if not can_cancel(now):
            raise _moved(now)
        return cancelled(now, desk.now())

    word = "is cancelled already" if found.is_cancelled else f"is {found.state}"
    reason = "" if can_cancel(found) else f"operation `{found.id}` {word}"
    return await _planned(desk, found, stopped, "cancelled", reason, "look at its steps")


async def plan_retry(desk: OperationDesk, request: Request) -> PlannedWrite:
    """Carries an operation out again that failed or was cancelled."""
    found = await desk.one(request.path_params["id"], _name(request))
    others = await desk.records.list()

    def again(now: Operation) -> Operation:
        if not can_retry(now, others):
            raise _moved(now)
        return resumed(now, desk.now())

    reason, hint = "", "wait for its end"
    if (replaced := refuse_again(found, others)) is not None:
        reason, hint = replaced.reason, replaced.hint
    elif not can_retry(found, others):
        reason, hint = f"operation `{found.id}` is {found.state}", "only what failed can be retried"
    elif (other := await desk.at_work_on(found.subject)) is not None:
        reason = f"operation `{other.id}` is at work on `{found.subject}`"
    return await _planned(desk, found, again, "retried", reason, hint)


async def _planned(
    desk: OperationDesk,
    operation: Operation,
    change: Change,
    summary: str,
    reason: str,
    hint: str,
    follow_up: Callable[[], Awaitable[None]] | None = None,
) -> PlannedWrite:
    async def act() -> Written:
        made = await desk.change(operation, change)
        if follow_up is not None:
            await follow_up()
        return begun_answer(made.id)

    return PlannedWrite(
        target=AuditTarget(KIND, "", operation.id),
        act=act,
        summary=f"{summary}: {operation.kind} {operation.subject}",
        blocked=Blocked(reason, hint) if reason else None,
        effects=[Effect("update", KIND, "", operation.id)],
    )


def _moved(now: Operation) -> Refused:
    """Another client was faster."""
    return Refused(
        409,
        f"operation `{now.id}` is {now.state} now",
        "look at the operation as it is now",
        code="conflict",
    )


def _name(request: Request) -> str:
    subject = subject_of(request)
    return subject.user or subject.name
