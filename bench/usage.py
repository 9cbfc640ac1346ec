"""Costs over folded days: what other prices would have cost, and a month report."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Final

from bench.support.options import options
from fairlead.console.boards.usage.usage_rows import usage_rows
from fairlead.model.usage.ledger import GPU, HOUR, LedgerJob, PriceClass, UsedBy
from fairlead.model.usage.prices import Price
from fairlead.model.usage.sums import NodeSum, UsageIntegral, UsageSum
from fairlead.rules.usage.cost import node_totals
from fairlead.rules.usage.prices import PriceBook

DAY: Final = 24 * HOUR
BASE: Final = 20_700 * DAY
MODELS: Final = ("A100", "H100", "L40S", "T4", "V100", "A10", "H200", "")
_TRIES: Final = 9


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
