"""Ended operations go into the store's history, and their old records out of the cluster.

Specification: docs/spec/operations.md#history.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Final

from fairlead.errors import OutsideError, StoreDown
from fairlead.model.operations.operation import Operation, OperationState
from fairlead.ports import OperationHistory, OperationRecords
from fairlead.rules.operations.progress import records_to_remove
from fairlead.wire.operations.document import history_row

HISTORY_SECONDS: Final = 400 * 86_400
"""How long the store keeps an ended operation."""


class HistoryKeeper:
    """`history`: None = there is no store; then only old records are removed."""

    def __init__(self, records: OperationRecords, history: OperationHistory | None) -> None:
        self._records = records
        self._history = history
        self._kept: dict[str, float] = {}

    async def look(self, found: Iterable[Operation], now: float) -> None:
        """Keep what has ended since the last look, and remove what is old. `found`: all records.

        What cannot be written now is written at a later look; no record is removed before the
        history has it.
        """
        operations = tuple(found)
        if self._history is None:
            is_kept = True
        else:
            is_kept = await self._keep(self._history, operations, now)
        if is_kept:
            for id in records_to_remove(operations, now):
                with contextlib.suppress(OutsideError):
                    await self._records.remove(id)

    async def _keep(
        self, history: OperationHistory, operations: tuple[Operation, ...], now: float
    ) -> bool:
        ended = [
            each
            for each in operations
            if each.state.is_ended and self._kept.get(each.id) != each.updated_at
        ]
        try:
            for each in ended:
                if each.state is not OperationState.CANCELLED or _has_begun(each):
                    await history.keep_operation(history_row(each))
                self._kept[each.id] = each.updated_at
            if ended:
                await history.forget_operations(round((now - HISTORY_SECONDS) * 1000))
        except StoreDown:
            return False
        present = {each.id for each in operations}
        self._kept = {id: at for id, at in self._kept.items() if id in present}
        return True


def _has_begun(operation: Operation) -> bool:
    """A plan that was cancelled is no history."""
    return any(each.started_at is not None for each in operation.progress)
