"""A laptop of more than 200 nodes records no usage: each answer from its ledger has the reason."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import pytest

from fairlead.console.boards.usage.day_bars import usage_days
from fairlead.console.boards.usage.idle_rows import idle_table
from fairlead.console.boards.usage.past import find_moment
from fairlead.console.boards.usage.price_rows import price_table
from fairlead.console.boards.usage.replay import quota_replay
from fairlead.console.boards.usage.report import month_report
from fairlead.console.boards.usage.usage_rows import usage_table
from fairlead.console.http.health_answers import HealthAnswers
from fairlead.edge.store.address import SQLITE, StoreAddress
from fairlead.edge.store.opened import open_store
from fairlead.edge.store.sql_store import SqlStore
from fairlead.errors import UserError
from fairlead.run.laptop import recorded_world

NOW: Final = 1_800_000_000_000
WHY: Final = "a laptop of more than 200 nodes does not record usage"
TABLES: Final[tuple[Callable[[SqlStore], Awaitable[Any]], ...]] = (
    lambda store: usage_table(store.ledger, {}, NOW),
    lambda store: idle_table(store.ledger, {}, NOW),
    lambda store: price_table(store.ledger, NOW),
)
QUESTIONS: Final[tuple[Callable[[SqlStore], Awaitable[Any]], ...]] = (
    lambda store: find_moment(store.ledger, "-2h", NOW),
    lambda store: month_report(store.ledger, "2026-11"),
    lambda store: quota_replay(store.ledger, None, {}, NOW),
)


async def test_each_answer_has_the_reason(tmp_path: Path) -> None:
    store = await open_store(StoreAddress(SQLITE, file=str(tmp_path / "store")))
    large: Any = SimpleNamespace(is_large=True)
    try:
        async with recorded_world(large, store) as usage:
            assert usage is None
        for table in TABLES:
            (warning,) = (await table(store)).warnings
            assert (warning.code, warning.message) == ("ledger-off", WHY)
            assert "smaller scenario" in warning.hint
        days = await usage_days(store.ledger, {}, NOW)
        assert [each.code for each in days.warnings] == ["ledger-off"]
        for ask in QUESTIONS:
            with pytest.raises(UserError) as caught:
                await ask(store)
            assert caught.value.what == WHY
        world: Any = SimpleNamespace(clock=SimpleNamespace(now=lambda: NOW / 1000))
        assert (await HealthAnswers().ledger_look(store.ledger.ledger_bounds, world)).is_off
    finally:
        await store.close()
