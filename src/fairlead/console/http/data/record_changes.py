"""Changes of an operation's record by others than the process at work, which writes it, too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from fairlead.errors import ChangedMeanwhile
from fairlead.model.operations.operation import Operation
from fairlead.ports import OperationRecords

TRIES: Final = 5
"""How often a change is written anew that the process at work was faster than."""

Change = Callable[[Operation], Operation]


async def write_change(
    records: OperationRecords, operation: Operation, change: Change
) -> Operation:
    """The operation with the change, as it is recorded now. `change`: is made of the newest record;
    what it raises ends the attempts.

    Raises ChangedMeanwhile if the process at work is faster each time, or the record is gone.
    """
    for _ in range(TRIES):
        try:
            return await records.save(change(operation))
        except ChangedMeanwhile:
            found = await records.get(operation.id)
            if found is None:
                raise
            operation = found
    raise ChangedMeanwhile(
        "kubernetes", f"operation `{operation.id}` changes all the time", "try again"
    )
