"""What tables of usage read from the ledger, and what their answers have in common."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final, TypeVar

from msgspec import Struct

from fairlead.console.boards.holders import NO_VALUE
from fairlead.console.boards.rows import Entry, RowSet, choices
from fairlead.console.pages.envelope import (
    Sentence,
    Timestamp,
    Warning,
    exact_timestamp,
    timestamp,
)
from fairlead.console.pages.usage.tables import UnrecordedTime, UsagePeriod
from fairlead.model.usage.ledger import LedgerBounds
from fairlead.model.usage.sums import NodeSum, UsageSum
from fairlead.ports import LedgerReading
from fairlead.rules.usage.days import time_zone
from fairlead.rules.usage.past import OFF
from fairlead.rules.usage.periods import Period, PeriodPlan, plan_of
from fairlead.rules.usage.prices import PriceBook

STALE_MS: Final = 30_000
AWAY_MS: Final = 120_000
"""How old the newest heartbeat is before an answer warns that no recorder writes."""

Form = TypeVar("Form")


class Table(Struct, frozen=True):
    """The answer of a list before filters. `more`: what the list has beside its rows. `filters`:
    fields of a row that a filter may choose by.
    """

    row_type: Any
    rows: Sequence[Any]
    sentence: Sentence
    generated_at: str
    stale: bool
    version: str
    warnings: list[Warning]
    more: dict[str, Any]
    filters: Sequence[str] = ()

    @property
    def envelope(self) -> tuple[str, bool, str, list[Warning]]:
        return self.generated_at, self.stale, self.version, self.warnings

    @property
    def row_set(self) -> RowSet[Any]:
        """The rows stay in their order unless the client asks for another."""
        entries = [
            Entry(
                row,
                _text(row),
                {name: (getattr(row, name).lower() or NO_VALUE,) for name in self.filters},
            )
            for row in self.rows
        ]
        return RowSet(self.row_type, entries, self._facets(), ties="")

    def as_list(self, form: type[Form]) -> Form:
        """All rows in one list, for a command."""
        whole: Any = form
        found: Form = whole(
            *self.envelope,
            total=len(self.rows),
            page=1,
            size=max(1, len(self.rows)),
            sentence=self.sentence,
            facets=self._facets(),
            items=list(self.rows),
            **self.more,
        )
        return found

    def _facets(self) -> dict[str, list[str]]:
        return {name: choices(getattr(row, name) for row in self.rows) for name in self.filters}


def _text(row: Any) -> str:
    """What `q` searches: the words of a row."""
    values = (getattr(row, name) for name in row.__struct_fields__)
    return "\n".join(value for value in values if isinstance(value, str)).lower()


class UsageRead(Struct, frozen=True):
    """`nodes`: () where only some namespaces are asked for."""

    period: Period
    plan: PeriodPlan
    bounds: LedgerBounds
    book: PriceBook
    sums: tuple[UsageSum, ...]
    nodes: tuple[NodeSum, ...]

    @property
    def shown_period(self) -> UsagePeriod:
        return shown_period(self.period, self.plan, self.bounds)


async def read_usage(
    ledger: LedgerReading,
    bounds: LedgerBounds,
    period: Period,
    namespaces: Collection[str] | None,
) -> UsageRead:
    """The sums of a period; none of them crosses the beginning of a billing day."""
    plan = plan_of(period, bounds, time_zone(bounds.zone))
    sums: list[UsageSum] = []
    nodes: list[NodeSum] = []
    for each in plan.pieces:
        ask = ledger.usage_days if each.is_folded else ledger.usage_sums
        sums += await ask(each.start, each.end, namespaces)
        if namespaces is None:
            ask_nodes = ledger.node_days if each.is_folded else ledger.node_sums
            nodes += await ask_nodes(each.start, each.end)
    book = PriceBook(await ledger.prices())
    return UsageRead(period, plan, bounds, book, tuple(sums), tuple(nodes))


def shown_period(period: Period, plan: PeriodPlan, bounds: LedgerBounds) -> UsagePeriod:
    return UsagePeriod(
        period.name,
        time_text(plan.start),
        time_text(period.end),
        time_text(plan.until),
        bounds.zone,
        [UnrecordedTime(time_text(gap.started_at), time_text(gap.ended_at)) for gap in plan.gaps],
    )


EMPTY: Final = (
    "the usage ledger is empty: no recorder has written to this store",
    "start `fairlead usage-recorder`, or look at its log",
)


def time_text(at: int) -> Timestamp:
    """
    >>> time_text(1_767_600_000_400)
    '2026-01-05T08:00:00Z'
    """
    return timestamp(at / 1000) or ""


def envelope_of(bounds: LedgerBounds, now: int) -> dict[str, Any]:
    """The fields of every answer from the ledger. `now`: milliseconds."""
    return {
        "generated_at": exact_timestamp(now / 1000),
        "stale": now - bounds.heartbeat > STALE_MS,
        "version": str(bounds.heartbeat),
        "warnings": _warnings(bounds, now),
    }


def _warnings(bounds: LedgerBounds, now: int) -> list[Warning]:
    if bounds.is_off:
        return [Warning("ledger-off", "usage-recorder", *OFF)]
    if not bounds.heartbeat:
        return [Warning("ledger-empty", "usage-recorder", *EMPTY)]
    if now - bounds.heartbeat > AWAY_MS:
        since = time_text(bounds.heartbeat)
        return [
            Warning(
                "recorder-away",
                "usage-recorder",
                f"no usage recorder has written since {since}: later times are not contained",
                "look at the log of `fairlead usage-recorder`",
                {"since": since},
            )
        ]
    return []
