"""Carries one operation out, step by step, under the Lease of its subject.

Whatever an earlier process left, this one goes on from the record: steps may be repeated, and the
record is written before and after each. Only the holder of the Lease writes; a process that finds
another holder in the record stops.

Specification: docs/spec/operations.md.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final

from msgspec import Struct, structs

from fairlead.apps.leader import Leader, LeaseTimes
from fairlead.apps.operations.steps import Attempt, StepWorker
from fairlead.apps.operations.taking import OPERATION_LEASE_TIMES, is_taken
from fairlead.errors import ChangedMeanwhile, OutsideError, UserError
from fairlead.model.operations.operation import (
    Operation,
    OperationState,
    StepState,
)
from fairlead.ports import Helm, OperationCluster, OperationRecords
from fairlead.rules.operations.progress import (
    WAITING_ONLY,
    Turn,
    begun,
    next_turns,
    onward,
    progress_of,
    refuse_again,
    resumed,
    step_ended,
    step_noted,
    step_of,
)

_LOOK_SECONDS: Final = 1.0
_AGAIN_SECONDS: Final = 1.0
_log = logging.getLogger(__name__)

Report = Callable[[Operation], object]


class OperationTaken(UserError):
    """Another process holds the Lease of the subject, or has taken the operation over."""


class _Parts(Struct, frozen=True):
    """What a runner works with."""

    records: OperationRecords
    steps: StepWorker
    identity: str
    now: Callable[[], float]
    monotonic: Callable[[], float]
    sleep: Callable[[float], Awaitable[object]]
    report: Report
    leaves_waits: bool


class OperationRunner:
    """`identity`: of this process, in Leases and records; no other process may have it. `now`:
    epoch seconds of the cluster's clock. `report`: receives each new state of an operation.
    `leaves_waits`: at a step that only waits the operation is left, running and without a holder,
    for another process. `say`: receives a line if it waits for another process's Lease.
    """

    def __init__(
        self,
        records: OperationRecords,
        cluster: OperationCluster,
        helm: Helm | None,
        identity: str,
        *,
        now: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        times: LeaseTimes = OPERATION_LEASE_TIMES,
        report: Report = lambda _operation: None,
        leaves_waits: bool = False,
        say: Callable[[str], object] = lambda _line: None,
    ) -> None:
        worker = StepWorker(cluster, helm, records, now)
        self._parts = _Parts(records, worker, identity, now, monotonic, sleep, report, leaves_waits)
        self._times = times
        self._say = say

    async def run(
        self, id: str, *, patience: float = 0.0, is_living_refused: bool = False
    ) -> Operation:
        """Carry the recorded operation out, until it has ended; an ended one is returned.

        `patience`: seconds to wait for the Lease; with `is_living_refused` only for that of a
        process that does not renew it. Raises OperationTaken without it, UserError for an unknown
        id, OutsideError if the record cannot be read at the start.
        """
        parts = self._parts
        operation = await _read(parts.records, id)
        if operation.state.is_ended:
            return operation
        leader = Leader(
            parts.records.lease(operation.subject),
            parts.identity,
            monotonic=parts.monotonic,
            times=self._times,
        )
        renewing: asyncio.Task[None] | None = None
        try:
            await self._take(leader, operation, patience, is_living_refused)
            renewing = asyncio.ensure_future(leader.run())
            return await _Work(parts, leader, operation).run()
        finally:
            if renewing is not None:
                renewing.cancel()
                await asyncio.gather(renewing, return_exceptions=True)
            await leader.release()

    async def resume(self, id: str, *, patience: float = 0.0) -> Operation:
        """As `run`; an operation that has ended without success begins again, unless other work has
        replaced it: UserError. If another process lives and is at work on it, OperationTaken is
        raised as soon as it renews the Lease.
        """
        parts = self._parts
        operation = await _read(parts.records, id)
        if operation.state is OperationState.SUCCEEDED:
            return operation
        if operation.state is OperationState.PLANNED:
            raise UserError(f"operation `{id}` is a plan that has not begun")
        if operation.state.is_ended:
            refusal = refuse_again(operation, await parts.records.list())
            if refusal is not None:
                raise UserError(refusal.reason, refusal.hint)
            await parts.records.save(resumed(operation, parts.now()))
        return await self.run(id, patience=patience, is_living_refused=True)

    async def _take(
        self, leader: Leader, operation: Operation, patience: float, is_living_refused: bool
    ) -> None:
        """Raises OperationTaken if another process has it, or the API server does not give it."""
        parts = self._parts
        if not await is_taken(
            leader,
            self._times,
            patience=patience,
            is_living_refused=is_living_refused,
            monotonic=parts.monotonic,
            sleep=parts.sleep,
            say=self._say,
        ):
            raise _taken(operation, leader, self._times.length)


def _taken(operation: Operation, leader: Leader, length: int) -> OperationTaken:
    id = operation.id
    if leader.holder in ("", leader.identity):
        return OperationTaken(f"operation `{id}` has not begun: its Lease: {leader.trouble}")
    hint = f"`fairlead operation follow {id}` shows it"
    if leader.is_renewed:
        hint += f", `fairlead operation cancel {id}` ends it"
    else:
        hint += f"; the Lease of a dead process ends after {length} s"
    return OperationTaken(f"operation `{id}` is at work elsewhere: {leader.holder}", hint)


async def _read(records: OperationRecords, id: str) -> Operation:
    found = await records.get(id)
    if found is None:
        hint = "`fairlead operation list` shows what is recorded"
        raise UserError(f"there is no operation `{id}`", hint)
    return found


class _Work:
    """One operation while this process holds its Lease."""

    def __init__(self, parts: _Parts, leader: Leader, operation: Operation) -> None:
        self._parts = parts
        self._leader = leader
        self._operation = operation
        self._began: dict[Turn, float] = {}

    async def run(self) -> Operation:
        await self._read_again()  # another process may have worked on it until its Lease ended
        if self._operation.state.is_ended:
            return self._operation
        parts = self._parts
        await self._save(lambda each: onward(begun(each, parts.identity, parts.now()), parts.now()))
        while not self._operation.state.is_ended:
            turns = next_turns(self._operation)
            if not turns or not all(map(self._is_running, turns)):  # it was cancelled meanwhile
                await self._save(lambda each: onward(each, parts.now()))
                continue
            attempts = await self._attempted(turns)
            news = [
                (turn, each)
                for turn, each in zip(turns, attempts, strict=True)
                if each.is_over or each.is_news(progress_of(self._operation, turn))
            ]
            if news:
                await self._save(partial(_after, news, parts.now))
            else:
                await self._look()
            if not any(each.is_over for each in attempts):
                if parts.leaves_waits and all(map(self._only_waits, turns)):
                    await self._save(lambda each: structs.replace(each, holder=""))
                    break
                await parts.sleep(_LOOK_SECONDS)
        return self._operation

    def _only_waits(self, turn: Turn) -> bool:
        return isinstance(step_of(self._operation, turn).work, WAITING_ONLY)

    def _is_running(self, turn: Turn) -> bool:
        return progress_of(self._operation, turn).state is StepState.RUNNING

    async def _attempted(self, turns: Sequence[Turn]) -> list[Attempt]:
        self._check_lease()
        parts, operation = self._parts, self._operation
        return await asyncio.gather(
            *(
                parts.steps.attempt(
                    step_of(operation, turn).work,
                    operation.id,
                    turn,
                    parts.monotonic() - self._began.setdefault(turn, parts.monotonic()),
                )
                for turn in turns
            )
        )

    def _check_lease(self) -> None:
        if not self._leader.is_held:
            what = f"operation `{self._operation.id}`: the Lease was lost: {self._leader.trouble}"
            raise OperationTaken(what, "the process that holds it now goes on")

    async def _look(self) -> None:
        """Whether the operation was cancelled; a record that cannot be read is read later."""
        with contextlib.suppress(OutsideError):
            found = await self._parts.records.get(self._operation.id)
            if found is not None:
                self._adopt(found)

    async def _save(self, change: Callable[[Operation], Operation]) -> None:
        """Write the change, on top of what others have written: a wish to cancel.

        Without an answer it is tried again while the Lease is held; the record shows whether it was
        written.
        """
        while True:
            self._check_lease()
            wanted = change(self._operation)
            try:
                self._operation = await self._parts.records.save(wanted)
            except ChangedMeanwhile:
                await self._read_again()
                if not _has_progress_of(self._operation, wanted):
                    continue
            except OutsideError as error:
                _log.warning("operation %s is not recorded: %s", wanted.id, error.what)
                await self._parts.sleep(_AGAIN_SECONDS)
                continue
            self._parts.report(self._operation)
            return

    async def _read_again(self) -> None:
        id = self._operation.id
        while True:
            self._check_lease()
            try:
                found = await self._parts.records.get(id)
            except OutsideError as error:
                _log.warning("operation %s cannot be read: %s", id, error.what)
                await self._parts.sleep(_AGAIN_SECONDS)
                continue
            if found is None:
                raise UserError(f"the record of operation `{id}` was deleted meanwhile")
            self._adopt(found)
            return

    def _adopt(self, found: Operation) -> None:
        """Raises OperationTaken if another process has begun to work on it."""
        own = self._parts.identity
        if self._operation.holder == own and found.holder not in ("", own):
            raise OperationTaken(f"operation `{found.id}` is at work elsewhere: {found.holder}")
        self._operation = found


def _after(
    news: Sequence[tuple[Turn, Attempt]], now: Callable[[], float], operation: Operation
) -> Operation:
    """The operation after these attempts, with its next steps begun."""
    for turn, attempt in news:
        if attempt.is_over:
            operation = step_ended(operation, turn, now(), attempt.failure)
        else:
            operation = step_noted(
                operation,
                turn,
                now(),
                message=attempt.message,
                object=attempt.object,
                event=attempt.event,
            )
    return onward(operation, now())


def _has_progress_of(found: Operation, wanted: Operation) -> bool:
    """Whether the record has a change already, by a write without an answer."""
    return (found.progress, found.undo_progress, found.state, found.holder) == (
        wanted.progress,
        wanted.undo_progress,
        wanted.state,
        wanted.holder,
    )
