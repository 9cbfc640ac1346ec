"""Costs over folded days: what other prices would have cost, and a month report; the idle page."""

from __future__ import annotations

import asyncio
import random
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from bench.support.options import options
from fairlead.console.boards.usage.idle_rows import idle_table
from fairlead.console.boards.usage.usage_rows import usage_rows
from fairlead.edge.store.address import SQLITE, StoreAddress
from fairlead.edge.store.opened import open_store
from fairlead.model.usage.ledger import (
    GPU,
    HOUR,
    Amount,
    LedgerBatch,
    LedgerJob,
    NodeHour,
    NodeInterval,
    PodHour,
    PodInterval,
    PriceClass,
    UsedBy,
)
from fairlead.model.usage.prices import Price
from fairlead.model.usage.sums import NodeSum, UsageIntegral, UsageSum
from fairlead.ports import UsageLedger
from fairlead.rules.usage.cost import node_totals
from fairlead.rules.usage.prices import PriceBook

DAY: Final = 24 * HOUR
BASE: Final = 20_700 * DAY
MODELS: Final = ("A100", "H100", "L40S", "T4", "V100", "A10", "H200", "")
_TRIES: Final = 9
_NODE_CLASS: Final = PriceClass((), "A100", 8 * GPU, 96_000, 1_048_576)


def measure_usage_report() -> None:
    """Rows and totals of all days, as for a table, with prices that change each month; and beside
    it the sum of one integral of them. The days are in memory, as after their reading. CPU time of
    the process: the least of nine tries.
    """
    parser = options(measure_usage_report)
    parser.add_argument("--days", type=int, default=400, help="(default 400)")
    parser.add_argument("--rows", type=int, default=100, help="rows of each day (default 100)")
    chosen = parser.parse_args()
    sums, nodes = _days(chosen.days, chosen.rows)
    print(f"{len(sums)} sums of owners and {len(nodes)} of nodes in {chosen.days} days")
    baseline = _least(lambda: sum(each.integral.gpu for each in sums))
    print(f"the sum of one integral      {baseline:7.1f} ms")
    for by in ("leaf", "user", "job"):
        found = _least(lambda by=by: usage_rows(sums, _book(chosen.days), by))  # type: ignore[misc]
        print(f"other prices, by {by:<11} {found:7.1f} ms")
    keyed = [(each.price_class.model, each) for each in nodes]
    found = _least(lambda: node_totals(keyed, _book(chosen.days)))
    print(f"the split of the GPU money   {found:7.1f} ms")


def measure_usage_idle() -> None:
    """What `/idle` reads of a SQLite store and makes of it, beside what it once read: all hours and
    intervals of the period. One try of each, in this order.
    """
    parser = options(measure_usage_idle)
    parser.add_argument("--pods", type=int, default=50_000, help="with a GPU each, on eighths")
    parser.add_argument("--hours", type=int, default=24)
    parser.add_argument("--idle", type=int, default=5, help="per cent of the pods (default 5)")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = StoreAddress(SQLITE, file=str(Path(folder) / "store"))
        asyncio.run(_idle(place, chosen.pods, chosen.hours, chosen.idle))


async def _idle(place: StoreAddress, pods: int, hours: int, idle: int) -> None:
    store = await open_store(place)
    ledger, until = store.ledger, BASE + hours * HOUR
    try:
        epoch = (await ledger.claim_ledger("bench", BASE)).epoch
        nodes = tuple(
            NodeInterval(f"n-{number}", BASE, f"node-{number:05d}", _NODE_CLASS)
            for number in range(-(-pods // 8))
        )
        held = tuple(_held(number) for number in range(pods))
        await ledger.write_ledger(epoch, LedgerBatch(BASE, held, nodes=nodes))
        for hour in range(BASE, until, HOUR):
            rows = tuple(
                PodHour(each.pod_uid, BASE, hour, **{_state(number, idle): GPU * HOUR})
                for number, each in enumerate(held)
            )
            free = tuple(NodeHour(each.node_uid, BASE, hour, held=8 * GPU * HOUR) for each in nodes)
            batch = LedgerBatch(hour + HOUR, pod_hours=rows, node_hours=free)
            await ledger.write_ledger(epoch, batch)
        await ledger.add_price(Price((), "EUR", 30_000_000, BASE, BASE))
        words = {"from": _moment(BASE), "to": _moment(until)}
        asked = (
            ("all hours and intervals", lambda: _all_rows(ledger, until)),
            ("the page", lambda: idle_table(ledger, words, until)),
            ("a researcher's page", lambda: idle_table(ledger, words, until, ["team-0"])),
            ("idle hours", lambda: ledger.idle_hours(BASE, until)),
            ("held hours", lambda: ledger.held_hours(BASE, until)),
            ("node hours", lambda: ledger.node_hours(BASE, until)),
        )
        print(f"{pods} pods in {hours} hours, {idle} % idle")
        for what, ask in asked:
            began, worked = time.perf_counter(), time.process_time()
            await ask()
            wall, cpu = time.perf_counter() - began, time.process_time() - worked
            print(f"{what:<24}{wall:7.2f} s, {cpu:.2f} CPU s", flush=True)
    finally:
        await store.close()


async def _all_rows(ledger: UsageLedger, until: int) -> None:
    assert await ledger.pod_hours(BASE, until)
    assert await ledger.pod_intervals(BASE, until)


def _held(number: int) -> PodInterval:
    return PodInterval(
        f"6f9619ff-8b86-d011-b42d-{number:012x}",
        BASE,
        UsedBy(f"team-{number % 100}", f"user-{number % 500}"),
        f"pod-{number}",
        f"node-{number // 8:05d}",
        _NODE_CLASS,
        Amount(GPU, 81_920, 8000, 65_536),
    )


def _state(number: int, idle: int) -> str:
    return "idle" if number % 100 < idle else "busy"


def _moment(at: int) -> str:
    return datetime.fromtimestamp(at // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _least(call: Callable[[], object]) -> float:
    times = []
    for _ in range(_TRIES):
        began = time.process_time()
        call()
        times.append(time.process_time() - began)
    return min(times) * 1000


def _book(days: int) -> PriceBook:
    """New prices each time, so that nothing of the last question is kept."""
    prices = [
        Price(
            (("gpu-model", model),),
            "EUR",
            10_000_000 + 1_000_000 * number + day,
            BASE + day * DAY,
            BASE + day * DAY,
            id=number * days + day,
        )
        for number, model in enumerate(MODELS)
        if model
        for day in range(0, days, 30)
    ]
    return PriceBook(tuple(prices))


def _days(days: int, rows: int) -> tuple[list[UsageSum], list[NodeSum]]:
    chance = random.Random(1)
    classes = [
        PriceClass((("zone", model),), model, 8 * GPU if model else 0, 96_000, 1_048_576)
        for model in MODELS
    ]
    owners = [
        (
            UsedBy(f"team-{number % 20}", f"user-{number % 50}", f"root.{number % 20}"),
            LedgerJob(f"uid-{number}", f"job-{number}", "mpijob"),
        )
        for number in range(rows * 10)
    ]
    sums, nodes = [], []
    for number in range(days):
        day = BASE + number * DAY
        for by, job in chance.sample(owners, rows):
            held = chance.randrange(1, 8) * GPU * DAY
            integral = UsageIntegral(held, 0, 16_000 * DAY, 65_536 * DAY, held // 2, held // 4)
            sums.append(UsageSum(day, by, job, chance.choice(classes), integral, 1))
        for each in classes:
            whole = each.gpu * DAY
            nodes.append(NodeSum(day, each, DAY * 10, whole * 4, whole, whole, whole * 3, whole))
    return sums, nodes
