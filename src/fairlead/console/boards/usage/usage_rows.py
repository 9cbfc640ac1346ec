"""The table of usage: by user, namespace, leaf, job or model (docs/spec/usage.md#usage)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

from msgspec.structs import asdict

from fairlead.console.boards.usage.figures import (
    Money,
    figures_of,
    hours,
    table_money,
    whole,
)
from fairlead.console.boards.usage.ledger_reads import Table, envelope_of, read_usage
from fairlead.console.pages.envelope import Sentence
from fairlead.console.pages.usage.tables import UnpricedClass, UsageFigures, UsageRow
from fairlead.errors import UserError
from fairlead.model.usage.sums import NodeSum, UsageSum
from fairlead.ports import LedgerReading
from fairlead.rules.usage.cost import Total, node_totals, totals
from fairlead.rules.usage.days import time_zone
from fairlead.rules.usage.periods import parse_period
from fairlead.rules.usage.prices import PriceBook, class_labels


class RowOwner(NamedTuple):
    """What a row is of."""

    name: str
    namespace: str = ""
    type: str = ""
    uid: str = ""


OWNERS: Final[Mapping[str, Callable[[UsageSum], RowOwner]]] = {
    "user": lambda each: RowOwner(each.by.user),
    "namespace": lambda each: RowOwner(each.by.namespace),
    "leaf": lambda each: RowOwner(each.by.leaf),
    "job": lambda each: RowOwner(each.job.name, each.by.namespace, each.job.type, each.job.uid),
    "model": lambda each: RowOwner(each.price_class.model),
}
"""By the words of `by`. Pods without a job are one row for each namespace."""
BY_DEFAULT: Final = "user"
_UNIT_MS: Final = 1


async def usage_table(
    ledger: LedgerReading,
    words: Mapping[str, str],
    now: int,
    namespaces: Collection[str] | None = None,
) -> Table:
    """`words`: `by` and those of a period. `namespaces`: only these; None = all. Raises UserError,
    StoreDown.
    """
    by = checked_by(words.get("by") or BY_DEFAULT)
    bounds = await ledger.ledger_bounds()
    period = parse_period(words, now, time_zone(bounds.zone))
    read = await read_usage(ledger, bounds, period, namespaces)
    rows, figures = usage_rows(read.sums, read.book, by)
    return Table(
        row_type=UsageRow,
        rows=rows,
        sentence=usage_sentence(figures, read.book.currency, read.period.name),
        **envelope_of(read.bounds, now),
        more={
            "by": by,
            "period": read.shown_period,
            "currency": read.book.currency,
            "totals": figures,
            "unpriced": unpriced_classes(read.nodes, read.book),
        },
    )


def checked_by(word: str) -> str:
    if word not in OWNERS:
        raise UserError(f"`by` is `{word[:40]}`", f"give one of {', '.join(OWNERS)}")
    return word


def usage_rows(
    sums: Sequence[UsageSum], book: PriceBook, by: str
) -> tuple[list[UsageRow], UsageFigures]:
    """The most GPU-hours first, and their sum."""
    found = totals(sums, book, OWNERS[by])
    owners = sorted(found, key=lambda owner: (_order(found[owner]), owner))
    rows = [found[owner] for owner in owners]
    moneys: list[Money] = table_money([each.charge for each in rows])
    shown = [
        UsageRow(
            **asdict(figures_of(total, money)),
            name=owner.name,
            namespace=owner.namespace,
            type=owner.type,
            uid=owner.uid,
        )
        for owner, total, money in zip(owners, rows, moneys, strict=True)
    ]
    return shown, whole(rows, moneys)


def _order(total: Total) -> tuple[int, int]:
    return -total.integral.gpu, -total.integral.cpu


def usage_sentence(figures: UsageFigures, currency: str, period: str) -> Sentence:
    """Of the whole table."""
    hours_text = f"{figures.gpu_hours:g} GPU-hours"
    if figures.cost is None:
        values: dict[str, Any] = {"gpuHours": figures.gpu_hours, "period": period}
        return Sentence("usage-hours", values, f"{hours_text} in the period {period}")
    values = {
        "gpuHours": figures.gpu_hours,
        "period": period,
        "cost": figures.cost,
        "currency": currency,
    }
    text = f"{hours_text} in the period {period} cost {figures.cost} {currency}"
    return Sentence("usage-cost", values, text)


def unpriced_classes(nodes: Sequence[NodeSum], book: PriceBook) -> list[UnpricedClass]:
    """The classes of nodes that had no price for some of the time, the longest time first."""
    found = node_totals(((each.price_class, each) for each in nodes), book)
    rows = [
        UnpricedClass(class_labels(price_class), hours(total.unpriced_ms, _UNIT_MS))
        for price_class, total in found.items()
        if total.unpriced_ms
    ]
    return sorted(rows, key=lambda row: (-row.node_hours, sorted(row.labels.items())))
