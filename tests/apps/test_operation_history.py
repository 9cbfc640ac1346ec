"""Ended operations go into the history (docs/spec/operations.md#history)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec import structs

from fairlead.apps.operations.history import HISTORY_SECONDS, HistoryKeeper
from fairlead.edge.store.address import SQLITE, StoreAddress
from fairlead.edge.store.opened import open_store
from fairlead.errors import StoreDown
from fairlead.model.operations.operation import (
    CreateStep,
    Operation,
    OperationKind,
    OperationState,
    OperationStep,
)
from fairlead.rules.operations.progress import (
    Turn,
    begun,
    cancelled,
    ended,
    planned,
    resumed,
    step_begun,
    step_ended,
)

DAY = 86_400.0
NOW = 1000 * DAY
STEP = OperationStep("Create it", CreateStep({"kind": "Dataset"}))


def operation(id: str, failure: str = "", at: float = NOW) -> Operation:
    kind = OperationKind.ACCELERATE
    plan = planned(id, kind, "dataset/team/a", (STEP,), by="ann", now=at - 10)
    work = step_begun(begun(plan, "me", at - 9), Turn(0), at - 8)
    return ended(step_ended(work, Turn(0), at - 5, failure), at)


class Removed:
    """Records, of which only removals are asked."""

    def __init__(self) -> None:
        self.ids: list[str] = []

    async def remove(self, id: str) -> None:
        self.ids.append(id)


@contextmanager
def keeper(history: Any) -> Iterator[tuple[HistoryKeeper, Removed]]:
    removed = Removed()
    records: Any = removed
    yield HistoryKeeper(records, history), removed


async def test_an_ended_operation_is_kept_and_a_resumed_one_replaced(tmp_path: Path) -> None:
    store = await open_store(StoreAddress(SQLITE, file=str(tmp_path / "store")))
    failed = operation("abc", "refused")
    running = begun(resumed(failed, NOW + 1), "me", NOW + 2)
    plan = planned("plan", OperationKind.DEPLOY, "component/x", (STEP,), now=NOW)
    with keeper(store) as (kept, removed):
        await kept.look([failed, plan], NOW)
        [row] = await store.operation_rows(10)
        assert (row.id, row.state, row.message) == ("abc", "Failed", "Create it: refused")
        assert (row.created_at, row.ended_at) == ((NOW - 10) * 1000, NOW * 1000)
        assert '"title":"Create it","state":"Failed"' in row.steps
        await kept.look([running, cancelled(plan, NOW + 2)], NOW + 2)
        assert await store.operation_rows(10) == (row,)
        done = ended(step_ended(step_begun(running, Turn(0), NOW + 3), Turn(0), NOW + 4), NOW + 5)
        await kept.look([done], NOW + 5)
        [row] = await store.operation_rows(10)
        assert (row.state, row.message) == ("Succeeded", "")
        assert removed.ids == []
    await store.close()


async def test_old_rows_and_records_go(tmp_path: Path) -> None:
    store = await open_store(StoreAddress(SQLITE, file=str(tmp_path / "store")))
    old = operation("old", at=NOW - HISTORY_SECONDS - 1)
    many = [operation(f"a{number:02}", at=NOW - 8 * DAY - number) for number in range(21)]
    with keeper(store) as (kept, removed):
        await kept.look([old, *many], NOW)
        assert removed.ids == ["a20", "old"]
        assert len(await store.operation_rows(100)) == 21
    await store.close()


class DownStore:
    async def keep_operation(self, row: object) -> None:
        raise StoreDown("the store is down")


async def test_no_record_goes_while_the_store_is_down() -> None:
    plan = planned("plan", OperationKind.DEPLOY, "component/x", (STEP,), now=NOW - DAY)
    with keeper(DownStore()) as (kept, removed):
        await kept.look([operation("abc"), plan], NOW)
        assert removed.ids == []
    with keeper(None) as (kept, removed):
        await kept.look([operation("abc"), plan], NOW)
        assert removed.ids == ["plan"]
    state = structs.replace(plan, state=OperationState.RUNNING)
    with keeper(None) as (kept, removed):
        await kept.look([state], NOW)
        assert removed.ids == []
