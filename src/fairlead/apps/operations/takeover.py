"""Carries out every running operation that no other process carries out.

For a server: operations that its pages start, and those that a dead process left.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import Final

from fairlead.apps.operations.history import HistoryKeeper
from fairlead.apps.operations.runner import OperationRunner, OperationTaken
from fairlead.errors import FairleadError, OutsideError
from fairlead.model.operations.operation import Operation, OperationState
from fairlead.ports import OperationRecords

LOOK_SECONDS: Final = 2.0
"""Pause between two looks at the records; one that is woken looks at once."""
AGAIN_SECONDS: Final = 10.0
"""Pause before an operation is tried again whose record or Lease cannot be read."""
PATIENCE_SECONDS: Final = 3600.0
"""How long one try waits for the Lease that another process holds. A Lease has to be seen unchanged
for its whole length before it may be taken.
"""
AT_ONCE: Final = 16
"""Operations that a process works on at the same time."""
_log = logging.getLogger(__name__)


class OperationTakeover:
    """`now`: the cluster's time. `woken`: is set after an operation was recorded. `history`:
    receives all records at each look.
    """

    def __init__(
        self,
        records: OperationRecords,
        runner: OperationRunner,
        woken: asyncio.Event,
        now: Callable[[], float],
        history: HistoryKeeper,
    ) -> None:
        self._records = records
        self._runner = runner
        self._woken = woken
        self._now = now
        self._history = history
        self._work: dict[str, asyncio.Task[None]] = {}
        self._trouble = ""

    async def run(self) -> None:
        """Until it is cancelled: the Leases at work are then given back."""
        try:
            while True:
                operations = await self._listed()
                self._begin(operations)
                await self._history.look(operations, self._now())
                self._woken.clear()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._woken.wait(), LOOK_SECONDS)
        finally:
            for task in self._work.values():
                task.cancel()
            await asyncio.gather(*self._work.values(), return_exceptions=True)

    async def _listed(self) -> tuple[Operation, ...]:
        try:
            found = await self._records.list()
        except OutsideError as error:
            if error.what != self._trouble:
                _log.warning("operations cannot be read: %s", error.log_line)
            self._trouble = error.what
            return ()
        self._trouble = ""
        return found

    def _begin(self, operations: tuple[Operation, ...]) -> None:
        self._work = {id: task for id, task in self._work.items() if not task.done()}
        for each in reversed(operations):  # the oldest first
            is_new = each.state is OperationState.RUNNING and each.id not in self._work
            if is_new and len(self._work) < AT_ONCE:
                self._work[each.id] = asyncio.create_task(self._carry_out(each.id))

    async def _carry_out(self, id: str) -> None:
        try:
            await self._runner.run(id, patience=PATIENCE_SECONDS)
        except OperationTaken as error:
            _log.info("%s", error.what)
        except FairleadError as error:
            _log.warning("operation %s: %s", id, error.log_line)
            await asyncio.sleep(AGAIN_SECONDS)
        except Exception:  # noqa: BLE001 - logged; other operations go on
            _log.exception("operation %s", id)
            await asyncio.sleep(AGAIN_SECONDS)
