"""Prices as a table, and the plan of a new one (docs/spec/usage.md#prices)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final
from zoneinfo import ZoneInfo

from msgspec import Struct
from msgspec.structs import replace

from fairlead.console.boards.usage.figures import CORE, hours, money_text, plain
from fairlead.console.boards.usage.ledger_reads import Table, envelope_of, time_text
from fairlead.console.pages.envelope import FieldFault, Scalar, Sentence
from fairlead.console.pages.usage.prices import (
    PriceClassRow,
    PriceOrder,
    PricePreview,
    PriceRow,
    PriceWritten,
)
from fairlead.errors import UserError
from fairlead.model.usage.ledger import GPU, RECORDS_KEPT, LedgerBounds, NodeInterval, PriceClass
from fairlead.model.usage.prices import Price
from fairlead.ports import LedgerReading
from fairlead.rules.usage.days import parse_day_start, time_zone
from fairlead.rules.usage.money import parse_money, render_money
from fairlead.rules.usage.prices import (
    PriceBook,
    class_labels,
    matcher_text,
    matches,
    matches_nothing,
    parse_matcher,
    price_faults,
)

_UNIT_MS: Final = 1


class PriceFacts(Struct, frozen=True):
    """`classes`: of the last 90 days -> milliseconds of nodes."""

    prices: tuple[Price, ...]
    classes: Mapping[PriceClass, int]
    bounds: LedgerBounds
    now: int

    @property
    def zone(self) -> ZoneInfo:
        return time_zone(self.bounds.zone)

    @property
    def book(self) -> PriceBook:
        return PriceBook(self.prices)


async def price_facts(ledger: LedgerReading, now: int) -> PriceFacts:
    """Raises StoreDown."""
    bounds = await ledger.ledger_bounds()
    nodes = await ledger.node_intervals(now - RECORDS_KEPT, now)
    return PriceFacts(await ledger.prices(), _classes(nodes, now, bounds.heartbeat), bounds, now)


def _classes(nodes: Sequence[NodeInterval], now: int, heartbeat: int) -> dict[PriceClass, int]:
    found: dict[PriceClass, int] = {}
    for each in nodes:
        node_ms = min(each.ended_at, heartbeat) - max(each.started_at, now - RECORDS_KEPT)
        found[each.price_class] = found.get(each.price_class, 0) + max(0, node_ms)
    return found


async def price_table(ledger: LedgerReading, now: int) -> Table:
    """The newest entry first. Raises StoreDown."""
    facts = await price_facts(ledger, now)
    book = facts.book
    in_force = {price.id for each in facts.classes if (price := book.at(each, now)) is not None}
    rows = [price_row(each, facts, each.id in in_force) for each in reversed(facts.prices)]
    zone = facts.zone.key
    return Table(
        row_type=PriceRow,
        rows=rows,
        sentence=_sentence(facts, book),
        **envelope_of(facts.bounds, now),
        more={"currency": book.currency, "zone": zone, "classes": _class_rows(facts, book)},
    )


def price_row(price: Price, facts: PriceFacts, in_force: bool) -> PriceRow:
    return PriceRow(
        id=price.id,
        matcher=dict(price.matcher),
        currency=price.currency,
        node_hour=render_money(price.node_hour),
        list_node_hour=money_text(price.list_node_hour),
        gpu_share_percent=None if price.gpu_permille is None else plain(price.gpu_permille / 10),
        valid_from=time_text(price.valid_from),
        entered_at=time_text(price.entered_at),
        entered_by=price.entered_by,
        note=price.note,
        ended=price.ended,
        in_force=in_force,
        classes=sum(matches(price.matcher, each) for each in facts.classes),
    )


def _class_rows(facts: PriceFacts, book: PriceBook) -> list[PriceClassRow]:
    """Those with the most time first."""
    ordered = sorted(facts.classes.items(), key=lambda item: (-item[1], item[0]))
    return [
        PriceClassRow(
            labels=class_labels(each),
            gpus=plain(each.gpu / GPU),
            cores=plain(each.cpu_milli / CORE),
            memory_mib=each.memory_mib,
            node_hours=hours(node_ms, _UNIT_MS),
            price=price.id if (price := book.at(each, facts.now)) is not None else None,
        )
        for each, node_ms in ordered
    ]


def _sentence(facts: PriceFacts, book: PriceBook) -> Sentence:
    without = sum(book.at(each, facts.now) is None for each in facts.classes)
    values: dict[str, Scalar] = {"prices": len(facts.prices), "without": without}
    if not without:
        return Sentence("prices-all", values, "every class of nodes has a price")
    classes = "class" if without == 1 else "classes"
    text = f"{without} {classes} of nodes {'has' if without == 1 else 'have'} no price"
    return Sentence("prices-without", values, text)


class PricePlan(Struct, frozen=True):
    """A price that is checked and not stored. `faults`: why it is refused."""

    price: Price
    facts: PriceFacts
    faults: tuple[FieldFault, ...]
    warnings: tuple[Sentence, ...]

    @property
    def row(self) -> PriceRow:
        return price_row(self.price, self.facts, in_force=self._is_in_force)

    @property
    def _is_in_force(self) -> bool:
        """Whether it would count now, once it is stored."""
        newest = replace(self.price, id=max((e.id for e in self.facts.prices), default=0) + 1)
        book = PriceBook((*self.facts.prices, newest))
        return any(book.at(each, self.facts.now) == newest for each in self.facts.classes)

    @property
    def preview(self) -> PricePreview:
        is_valid = not self.faults
        shown = self.row if is_valid else None
        return PricePreview(is_valid, list(self.faults), list(self.warnings), shown)

    def written(self, id: int) -> PriceWritten:
        """The answer, once it is stored with this id."""
        return PriceWritten(replace(self.row, id=id), list(self.warnings))


async def planned_price(
    ledger: LedgerReading, order: PriceOrder, now: int, entered_by: str
) -> PricePlan:
    """Checks a new price. Raises StoreDown; all faults of the order are in the plan."""
    facts = await price_facts(ledger, now)
    unreadable: list[FieldFault] = []

    def read(field: str, text: str, parse: Callable[[str], int]) -> int | None:
        try:
            return parse(text)
        except UserError as error:
            unreadable.append(FieldFault(field, "malformed", f"{error.what}; {error.hint}"))
            return None

    valid_from = read("validFrom", order.valid_from, lambda t: parse_day_start(t, facts.zone))
    node_hour = 0 if order.ended else read("nodeHour", order.node_hour, parse_money)
    listed = order.list_node_hour
    list_hour = read("listNodeHour", listed, parse_money) if listed and not order.ended else None
    currency = order.currency or facts.book.currency
    share = order.gpu_share_percent
    price = Price(
        matcher=parse_matcher(order.matcher),
        currency=currency,
        node_hour=node_hour or 0,
        valid_from=valid_from or 0,
        entered_at=now,
        list_node_hour=list_hour,
        gpu_permille=None if share is None or order.ended else round(share * 10),
        entered_by=entered_by,
        note=order.note,
        ended=order.ended,
    )
    known = {fault.path for fault in unreadable}
    written = {"nodeHour": order.node_hour, "listNodeHour": listed}
    found = price_faults(price, facts.prices, facts.classes.keys(), facts.zone, written)
    faults = [
        FieldFault(each.field, each.rule, f"{each.why.reason}; {each.why.hint}")
        for each in found
        if each.field not in known
    ]
    return PricePlan(price, facts, (*unreadable, *faults), _warnings(price, facts))


def _warnings(price: Price, facts: PriceFacts) -> tuple[Sentence, ...]:
    found = matches_nothing(price, facts.classes.keys())
    if found is None:
        return ()
    values: dict[str, Scalar] = {"matcher": matcher_text(price.matcher)}
    return (Sentence("price-matches-nothing", values, f"{found.reason}; {found.hint}"),)


def price_name(price: Price) -> str:
    """Which prices it belongs to, for the audit."""
    return matcher_text(price.matcher)


async def stored_price(
    ledger: LedgerReading, order: PriceOrder, now: int, entered_by: str
) -> PriceWritten:
    """Enters a price for a command. Raises UserError with all faults, StoreDown."""
    plan = await planned_price(ledger, order, now, entered_by)
    if plan.faults:
        raise UserError("; ".join(each.error for each in plan.faults), "correct the price")
    return plan.written(await ledger.add_price(plan.price))
