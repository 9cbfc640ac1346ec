"""Writes of the laptop's usage recorder: taken at once, stored one after another beside the world.

A run to a later time makes a batch for each moment at which something changes. Batches that wait
are joined, so that the store is never behind for long.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import Final

from msgspec.structs import replace

from fairlead.apps.usage_recorder import write_action
from fairlead.errors import OutsideError
from fairlead.model.actions import Outcome
from fairlead.model.usage.actions import FoldDay, ForgetLedger, UsageAction, WriteLedger
from fairlead.ports import ClockState, LedgerWriting, Timekeeper, WorldWrite
from fairlead.rules.usage.recording.pending import Pending

RETRY_SECONDS: Final = 1.0
_log = logging.getLogger(__name__)


class LedgerQueue:
    """`put` takes an action; `run` stores what waits, until cancelled."""

    def __init__(self, ledger: LedgerWriting, epoch: int, heartbeat: int) -> None:
        self._ledger = ledger
        self._epoch = epoch
        self._stored_at = self._at = heartbeat
        self._pending = Pending()
        self._days: deque[FoldDay | ForgetLedger] = deque()
        self._is_writing = False
        self._has_work = asyncio.Event()

    @property
    def is_flushed(self) -> bool:
        """Whether all that was put is stored."""
        return not self._has_work.is_set() and not self._is_writing

    def put(self, action: UsageAction) -> Outcome:
        if isinstance(action, WriteLedger):
            self._pending.add(action.batch)
            self._at = max(self._at, action.batch.at)
        elif isinstance(action, FoldDay | ForgetLedger):
            self._days.append(action)
        self._has_work.set()
        return Outcome()

    async def run(self) -> None:
        """A store that does not answer is logged once, and once more when it works again."""
        is_failing = False
        while True:
            await self._has_work.wait()
            try:
                await self.store()
            except OutsideError as error:
                if not is_failing:
                    _log.error("usage is not stored: %s", error.log_line)
                is_failing = True
                await asyncio.sleep(RETRY_SECONDS)
            else:
                if is_failing:
                    _log.info("usage is stored again")
                is_failing = False

    async def store(self) -> None:
        """Store all that waits. Raises OutsideError; then it waits on."""
        self._is_writing = True
        try:
            while len(self._pending) or self._stored_at < self._at:
                await self._store_batch()
            while self._days:
                await write_action(self._ledger, self._epoch, self._days[0])
                self._days.popleft()
            if not len(self._pending) and self._stored_at >= self._at:
                self._has_work.clear()
        finally:
            self._is_writing = False

    async def _store_batch(self) -> None:
        batch = self._pending.take(self._at, self._stored_at)
        try:
            await write_action(self._ledger, self._epoch, WriteLedger(batch))
        except BaseException:
            self._pending.give_back(batch)
            raise
        self._stored_at = max(self._stored_at, batch.at)


class FlushedTime:
    """A `Timekeeper` whose runs to a later time end when the ledger has all of them."""

    def __init__(self, keeper: Timekeeper, queue: LedgerQueue) -> None:
        self._keeper = keeper
        self._queue = queue
        self._is_running = False
        self._since = 0.0
        self._ended = 0

    def state(self) -> ClockState:
        state = self._keeper.state()
        self._look(state)
        if not self._is_running or state.until is not None:
            return state
        return replace(state, since=min(self._since, state.now), until=state.now)

    @property
    def version(self) -> int:
        self._look(self._keeper.state())
        return self._keeper.version + self._ended

    def _look(self, state: ClockState) -> None:
        if self._is_running and state.until is None and self._queue.is_flushed:
            self._is_running = False
            self._ended += 1

    def pause(self) -> None:
        self._keeper.pause()

    def resume(self) -> None:
        self._keeper.resume()

    def set_speed(self, speed: float) -> None:
        self._keeper.set_speed(speed)

    def step(self) -> list[WorldWrite]:
        return self._keeper.step()

    def run_until(self, at: float) -> None:
        self._since = self._keeper.state().now
        self._keeper.run_until(at)
        self._is_running = True
