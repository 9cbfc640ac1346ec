"""The bytes of a month report: the same from each engine, after a move, and after all records of
objects are gone. The ledger in memory writes the same bytes, so the engines agree with each other.
"""

from __future__ import annotations

import asyncio
import csv
import io
from collections.abc import Callable
from datetime import date
from pathlib import Path

import msgspec
import pytest
from tests.usage.memory_ledger import MemoryLedger
from tests.usage.small_ledger import ALICE, DAY, NOVEMBER, fill, price

from fairlead.console.boards.usage.report import FORMATS, month_report
from fairlead.console.boards.usage.report_texts import render_report
from fairlead.console.pages.usage.report import MonthReport
from fairlead.edge.store.address import SQLITE, StoreAddress
from fairlead.edge.store.administration import SqlAdministration
from fairlead.edge.store.opened import open_store
from fairlead.edge.store.questions import LedgerQuestions
from fairlead.edge.store.sql_store import SqlStore
from fairlead.errors import UserError
from fairlead.model.usage.ledger import HOUR
from fairlead.ports import UsageLedger
from fairlead.rules.usage.days import days_between, start_of, time_zone
from fairlead.rules.usage.money import parse_money

MONTH = "2026-11"
LATE = NOVEMBER + 20 * DAY
AS_OF = ("", "2026-11-10T00:00:00Z")


async def written(ledger: UsageLedger) -> int:
    """Three days, folded; a price is replaced late, and the second node has none."""
    folds = [(NOVEMBER + day * DAY, NOVEMBER + (day + 1) * DAY) for day in range(3)]
    epoch = await fill(ledger, folds=folds)
    await ledger.add_price(price(32_000_000, list_node_hour=40_000_000))
    await ledger.add_price(price(24_000_001, NOVEMBER + DAY, entered_at=LATE))
    return epoch


async def reports(ledger: UsageLedger) -> dict[tuple[str, str], bytes]:
    return {
        (as_of, form): render_report(await month_report(ledger, MONTH, as_of), form)
        for as_of in AS_OF
        for form in FORMATS
    }


async def right() -> dict[tuple[str, str], bytes]:
    ledger = MemoryLedger()
    await written(ledger)
    return await reports(ledger)


async def test_each_engine_writes_the_same_bytes_also_when_records_are_gone(
    store: SqlStore,
) -> None:
    epoch = await written(store.ledger)
    expected = await right()
    assert await reports(store.ledger) == expected
    assert await store.ledger.forget_ledger(epoch, NOVEMBER + 90 * DAY, 0) > 0
    assert await store.ledger.pod_intervals(NOVEMBER, NOVEMBER + 3 * DAY) != ()  # those still held
    assert await reports(store.ledger) == expected


async def test_an_imported_store_writes_the_same_bytes(
    address: StoreAddress, tmp_path: Path
) -> None:
    store = await open_store(address)
    await written(store.ledger)
    await store.close()
    lines = b"".join(await asyncio.to_thread(lambda: list(SqlAdministration(address).export())))
    moved = StoreAddress(SQLITE, file=str(tmp_path / "moved"))
    await asyncio.to_thread(SqlAdministration(moved).import_lines, lines)
    other = await open_store(moved)
    try:
        assert await reports(other.ledger) == await right()
    finally:
        await other.close()


async def test_a_late_price_is_the_difference_of_two_dates() -> None:
    ledger = MemoryLedger()
    await written(ledger)
    late, early = [await month_report(ledger, MONTH, as_of) for as_of in AS_OF]
    assert [each.id for each in early.prices] == [1] and [each.id for each in late.prices] == [1, 2]
    assert early.nodes is not None and late.nodes is not None
    costs = [parse_money(each.nodes.cost or "") for each in (early, late) if each.nodes]
    # Two of the three days have the later price: 48 h × (32 − 24.000001)
    assert costs[0] - costs[1] == 48 * (32_000_000 - 24_000_001)
    assert early.totals.gpu_hours == late.totals.gpu_hours


async def test_the_numbers_of_a_report_add_up() -> None:
    ledger = MemoryLedger()
    await written(ledger)
    found = await month_report(ledger, MONTH)
    whole = parse_money(found.totals.cost or "")
    for rows in (found.leaves, found.users, found.namespaces):
        assert sum(parse_money(row.cost) for row in rows if row.cost) == whole
        assert sum(row.gpu_hours for row in rows) == found.totals.gpu_hours
    nodes = found.nodes
    assert nodes is not None and parse_money(nodes.pods_cost or "") == whole
    assert parse_money(nodes.rest or "") + whole == parse_money(nodes.cost or "")
    assert (nodes.node_hours, nodes.unpriced_node_hours) == (144, 72)
    (model,) = found.models
    # 24 h of 32, 48 h of 24.000001, of which 0.9 are for the GPUs
    assert model.cost == "1728.000043"
    assert (model.gpu_hours, model.broken_gpu_hours, model.stranded_gpu_hours) == (576, 24, 48)
    assert (found.until, found.is_whole) == ("2026-11-04T00:00:00Z", False)


async def test_a_month_before_the_first_record_is_refused() -> None:
    ledger = MemoryLedger()
    await written(ledger)
    with pytest.raises(UserError) as caught:
        await month_report(ledger, "2026-10")
    assert (caught.value.what, caught.value.hint) == (
        "the ledger has no folded day of 2026-10",
        "its records begin at 2026-11-01T01:00:00Z, and its days are folded until "
        "2026-11-04T00:00:00Z",
    )


async def test_the_month_of_the_first_record_is_not_whole() -> None:
    ledger, zone = MemoryLedger(), time_zone("Europe/Berlin")
    start = start_of(date(2026, 10, 24), zone)
    days = list(days_between(start, start_of(date(2026, 11, 1), zone), zone))
    pod = msgspec.structs.replace(ALICE, start=0, end=None, gpus=1)
    hours = (days[-1][1] - start) // HOUR
    await fill(ledger, (pod,), start=start, hours=hours, zone="Europe/Berlin", folds=days)
    found = await month_report(ledger, "2026-10")
    assert hours == 8 * 24 + 1, "clocks are changed on the 25th"
    assert (found.totals.gpu_hours, found.end) == (hours, "2026-10-31T23:00:00Z")
    assert (found.until, found.is_whole) == (found.end, False)
    text = render_report(found, "markdown").decode()
    assert "- Not the whole month: the first record is later than its beginning" in text


@pytest.mark.parametrize(
    ("as_of", "cost"), [("2026-10-31T23:59:59Z", None), ("2026-11-01T00:00:00Z", "8.100000")]
)
async def test_before_the_first_price_was_entered_there_are_hours_and_no_cost(
    as_of: str, cost: str | None
) -> None:
    """A price of the future changes neither."""
    ledger = MemoryLedger()
    pod = msgspec.structs.replace(ALICE, start=0, end=None, gpus=1, cores=0, memory_mib=0)
    await fill(ledger, (pod,), hours=26, folds=[(NOVEMBER, NOVEMBER + DAY)])
    await ledger.add_price(price(3_000_000))
    await ledger.add_price(price(99_000_000, NOVEMBER + DAY, entered_at=NOVEMBER))
    found = await month_report(ledger, MONTH, as_of)
    assert (found.totals.gpu_hours, found.totals.cost) == (24, cost)
    assert found.totals.unpriced_gpu_hours == (24 if cost is None else 0)
    assert [each.id for each in found.prices] == ([] if cost is None else [1])


async def test_names_of_users_cannot_forge_a_table() -> None:

    evil = msgspec.structs.replace(
        ALICE, user="a|b\n# <script>\x1b[2J", namespace="=cmd()", leaf="[x](javascript:1)"
    )
    ledger = MemoryLedger()
    await fill(ledger, (evil,), folds=[(NOVEMBER, NOVEMBER + DAY)])
    found = await month_report(ledger, MONTH)
    text = render_report(found, "markdown").decode()
    assert "| a\\|b \\# \\<script\\>^\\[\\[2J |" in text
    assert "\n# <script>" not in text and "\x1b" not in text and "[x](" not in text
    sheet = render_report(found, "csv").decode()
    assert "'=cmd()" in sheet and "\x1b" not in sheet
    names = {row[0]: row[1] for row in csv.reader(io.StringIO(sheet, newline=""))}
    assert names["user"] == "a|b\n# <script>^[[2J"
    assert msgspec.json.decode(render_report(found, "json"), type=MonthReport) == found


async def test_a_command_asks_a_store_that_a_console_holds(
    address: StoreAddress, new_address: Callable[[], StoreAddress]
) -> None:
    store = await open_store(address)
    try:
        await written(store.ledger)
        found = await asyncio.to_thread(
            LedgerQuestions(address).ask, lambda ledger: month_report(ledger, MONTH)
        )
        assert render_report(found, "json") == (await right())["", "json"]
    finally:
        await store.close()
    with pytest.raises(UserError):
        await asyncio.to_thread(
            LedgerQuestions(new_address()).ask, lambda ledger: month_report(ledger, MONTH)
        )
