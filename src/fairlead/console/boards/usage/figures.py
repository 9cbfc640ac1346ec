"""Hours, shares and money of a total, as tables show them.

Money of one table is rounded together, so that its rows add up to its total.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Final

from fairlead.console.pages.envelope import percent_of
from fairlead.console.pages.usage.tables import GpuMoney, UsageFigures
from fairlead.model.usage.ledger import GPU, HOUR
from fairlead.model.usage.sums import UsageIntegral
from fairlead.rules.usage.cost import Charge, GpuSplit, NodeTotal, Total
from fairlead.rules.usage.money import apportioned, render_money, rounded

CORE: Final = 1000
GIB: Final = 1024
_PLACES: Final = 10_000

Money = tuple[int | None, int | None]
"""Cost and list cost in micro-units; None = no price."""


def hours(integral: int | Fraction, unit: int = GPU) -> float:
    """An amount times milliseconds, in units times hours, to four places (0.36 s).

    >>> hours(GPU * HOUR), hours(GPU * 1000)
    (1, 0.0003)
    """
    return plain(rounded(Fraction(integral) * _PLACES / (unit * HOUR)) / _PLACES)


def plain(value: float) -> float:
    """Whole numbers as integers, so that JSON has no `.0`."""
    return int(value) if value == int(value) else value


def table_money(charges: Sequence[Charge | None]) -> list[Money]:
    """What the rows of a table cost; rows without a price stay None."""
    priced = [each for each in charges if each is not None]
    costs = iter(apportioned([each.cost for each in priced]))
    listed = iter(apportioned([each.list_cost for each in priced]))
    return [(None, None) if each is None else (next(costs), next(listed)) for each in charges]


def money_text(micro: int | None) -> str | None:
    return None if micro is None else render_money(micro)


def saved_percent(money: Money) -> float | None:
    """
    >>> saved_percent((75, 100)), saved_percent((5, 0)), saved_percent((None, None))
    (25, 0, None)
    """
    cost, list_cost = money
    if cost is None or list_cost is None:
        return None
    if not list_cost:
        return 0
    return plain(round(float(100 * (1 - Fraction(cost, list_cost))), 2))


def figures_of(total: Total, money: Money) -> UsageFigures:
    of = total.integral
    known = of.busy + of.idle
    return UsageFigures(
        gpu_hours=hours(of.gpu),
        gpu_memory_gib_hours=hours(of.gpu_memory, GIB),
        core_hours=hours(of.cpu, CORE),
        memory_gib_hours=hours(of.memory, GIB),
        idle_percent=percent_of(of.idle, known),
        unknown_percent=percent_of(of.unknown, known + of.unknown),
        pods=total.pods,
        cost=money_text(money[0]),
        list_cost=money_text(money[1]),
        saved_percent=saved_percent(money),
        unpriced_gpu_hours=hours(total.unpriced),
    )


def whole(totals: Sequence[Total], moneys: Sequence[Money]) -> UsageFigures:
    """The last line of a table: the sum of its rows."""
    integral = UsageIntegral(
        *(
            sum(getattr(each.integral, name) for each in totals)
            for name in UsageIntegral.__struct_fields__
        )
    )
    total = Total(
        integral,
        sum(each.pods for each in totals),
        unpriced=sum(each.unpriced for each in totals),
    )
    return figures_of(total, money_sum(moneys))


def money_sum(moneys: Sequence[Money]) -> Money:
    """None if no row has a price."""
    costs = [cost for cost, _ in moneys if cost is not None]
    listed = [each for _, each in moneys if each is not None]
    return (sum(costs), sum(listed)) if costs else (None, None)


PartCosts = tuple[int, int, int, int, int, int] | None
"""Micro-units of used, idle, unknown, free, stranded and broken; None = no price."""


def split_costs(totals: Sequence[NodeTotal]) -> list[PartCosts]:
    """The GPU money of the rows of one table, rounded together."""
    priced = [each.money for each in totals if each.money is not None]
    cells = iter(apportioned([part for money in priced for part in money.parts]))
    return [
        None if each.money is None else tuple(next(cells) for _ in each.money.parts)  # type: ignore[misc]
        for each in totals
    ]


def gpu_money_of(split: GpuSplit, costs: PartCosts) -> GpuMoney:
    def cost(place: int) -> str | None:
        return None if costs is None else render_money(costs[place])

    return GpuMoney(
        gpu_hours=hours(sum(split.parts, Fraction(0))),
        used_gpu_hours=hours(split.used),
        idle_gpu_hours=hours(split.idle),
        unknown_gpu_hours=hours(split.unknown),
        free_gpu_hours=hours(split.free),
        stranded_gpu_hours=hours(split.stranded),
        broken_gpu_hours=hours(split.broken),
        cost=None if costs is None else render_money(sum(costs)),
        used_cost=cost(0),
        idle_cost=cost(1),
        unknown_cost=cost(2),
        free_cost=cost(3),
        stranded_cost=cost(4),
        broken_cost=cost(5),
    )


def whole_gpu_money(totals: Sequence[NodeTotal], costs: Sequence[PartCosts]) -> GpuMoney:
    """The last line of a table of GPU money."""
    split = sum((each.split for each in totals), GpuSplit())
    priced = [each for each in costs if each is not None]
    added = tuple(map(sum, zip(*priced, strict=True))) if priced else None
    return gpu_money_of(split, added)  # type: ignore[arg-type]
