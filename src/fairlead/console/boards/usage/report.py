"""The month report, from folded days alone (docs/spec/usage.md#month-report).

The trap: nothing here may depend on the time of asking, or on the order in which an engine returns
rows.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction
from typing import Final

from msgspec import Struct
from msgspec.structs import asdict

from fairlead.console.boards.usage.figures import (
    gpu_money_of,
    hours,
    money_text,
    plain,
    split_costs,
    whole_gpu_money,
)
from fairlead.console.boards.usage.ledger_reads import time_text
from fairlead.console.boards.usage.usage_rows import unpriced_classes, usage_rows
from fairlead.console.pages.usage.report import (
    ModelGpuMoney,
    MonthReport,
    NodeMoney,
    ReportPrice,
)
from fairlead.console.pages.usage.tables import GpuMoney, UnrecordedTime
from fairlead.errors import UserError
from fairlead.model.usage.ledger import LedgerBounds
from fairlead.model.usage.prices import Price
from fairlead.model.usage.sums import NodeSum, UsageSum
from fairlead.ports import LedgerReading
from fairlead.rules.usage.cost import NodeTotal, node_totals, totals
from fairlead.rules.usage.days import month_bounds, parse_moment, time_zone
from fairlead.rules.usage.money import render_money, rounded
from fairlead.rules.usage.past import OFF
from fairlead.rules.usage.prices import PriceBook

FORMATS: Final = ("markdown", "csv", "json")
_UNIT_MS: Final = 1


class _Month(Struct, frozen=True):
    """What the ledger has of a month. `nodes`: None where only some namespaces are reported."""

    name: str
    start: int
    end: int
    until: int
    as_of: int | None
    bounds: LedgerBounds
    book: PriceBook
    sums: tuple[UsageSum, ...]
    nodes: tuple[NodeSum, ...] | None


async def month_report(
    ledger: LedgerReading,
    month: str,
    as_of: str = "",
    namespaces: Collection[str] | None = None,
) -> MonthReport:
    """`as_of`: RFC 3339 with its zone, "" = all prices count. `namespaces`: only these; None = all.

    Raises UserError for a month of which no day is folded, StoreDown.
    """
    bounds = await ledger.ledger_bounds()
    start, end = month_bounds(month, time_zone(bounds.zone))
    until = min(end, bounds.folded_until)
    if until <= start:
        raise _no_day(month, bounds)
    at = parse_moment(as_of) if as_of else None
    sums = await ledger.usage_days(start, until, namespaces)
    nodes = await ledger.node_days(start, until) if namespaces is None else None
    if end <= bounds.first and not sums and not nodes:
        raise _no_day(month, bounds)  # pods may have been bound before the first record
    book = PriceBook(await ledger.prices(), at)
    return _report(_Month(month, start, end, until, at, bounds, book, sums, nodes))


def _no_day(month: str, bounds: LedgerBounds) -> UserError:
    if bounds.is_off and not bounds.folded_until:
        return UserError(*OFF)
    if not bounds.folded_until:
        hint = "the first day is folded an hour after its end"
        return UserError(f"the ledger has no folded day of {month}", hint)
    return UserError(
        f"the ledger has no folded day of {month}",
        f"its records begin at {time_text(bounds.first)}, and its days are folded until "
        f"{time_text(bounds.folded_until)}",
    )


def _report(month: _Month) -> MonthReport:
    leaves, figures = usage_rows(month.sums, month.book, "leaf")
    models, whole = _models(month)
    return MonthReport(
        month=month.name,
        zone=month.bounds.zone,
        start=time_text(month.start),
        end=time_text(month.end),
        until=time_text(month.until),
        is_whole=month.until == month.end and month.bounds.first <= month.start,
        as_of=None if month.as_of is None else time_text(month.as_of),
        currency=month.book.currency,
        totals=figures,
        nodes=_node_money(month),
        leaves=leaves,
        users=usage_rows(month.sums, month.book, "user")[0],
        namespaces=usage_rows(month.sums, month.book, "namespace")[0],
        models=models,
        model_totals=whole,
        unpriced=unpriced_classes(month.nodes or (), month.book),
        gaps=[
            UnrecordedTime(
                time_text(max(gap.started_at, month.start)),
                time_text(min(gap.ended_at, month.until)),
            )
            for gap in sorted(month.bounds.gaps)
            if gap.started_at < month.until and gap.ended_at > month.start
        ],
        prices=[_price(each) for each in _used_prices(month)],
    )


def _node_money(month: _Month) -> NodeMoney | None:
    """The cost of pods is that of the tables; the rest is what is left of the nodes' cost, so that
    the three add up.
    """
    if month.nodes is None:
        return None
    total = node_totals((("", each) for each in month.nodes), month.book).get("", NodeTotal())
    pods = totals(month.sums, month.book, lambda _: "").get("")
    cost = pods_cost = rest = None
    if total.charge is not None:
        held = pods.charge.cost if pods is not None and pods.charge is not None else Fraction(0)
        cost, pods_cost = rounded(total.charge.cost), rounded(held)
        rest = cost - pods_cost
    return NodeMoney(
        node_hours=hours(total.node_ms, _UNIT_MS),
        unpriced_node_hours=hours(total.unpriced_ms, _UNIT_MS),
        cost=money_text(cost),
        pods_cost=money_text(pods_cost),
        rest=money_text(rest),
    )


def _models(month: _Month) -> tuple[list[ModelGpuMoney], GpuMoney | None]:
    """The split of the GPU money by model, by name, and its sum."""
    if month.nodes is None:
        return [], None
    with_gpus = [each for each in month.nodes if each.price_class.gpu]
    by_model: Mapping[str, NodeTotal] = node_totals(
        ((each.price_class.model, each) for each in with_gpus), month.book
    )
    names = sorted(by_model)
    found = [by_model[name] for name in names]
    costs = split_costs(found)
    rows = [
        ModelGpuMoney(**asdict(gpu_money_of(total.split, cost)), model=name)
        for name, total, cost in zip(names, found, costs, strict=True)
    ]
    return rows, whole_gpu_money(found, costs)


def _used_prices(month: _Month) -> Sequence[Price]:
    """Those that counted for a node or a pod on some day, in the order of their ids."""
    days = {(each.price_class, each.day) for each in month.sums}
    days |= {(each.price_class, each.day) for each in month.nodes or ()}
    found = (month.book.at(price_class, day) for price_class, day in days)
    return sorted({each.id: each for each in found if each is not None}.values(), key=_id)


def _id(price: Price) -> int:
    return price.id


def _price(price: Price) -> ReportPrice:
    return ReportPrice(
        id=price.id,
        matcher=dict(price.matcher),
        node_hour=render_money(price.node_hour),
        list_node_hour=money_text(price.list_node_hour),
        gpu_share_percent=None if price.gpu_permille is None else plain(price.gpu_permille / 10),
        valid_from=time_text(price.valid_from),
        entered_at=time_text(price.entered_at),
    )
