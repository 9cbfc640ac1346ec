"""Which time is asked about, and from which records of the ledger it is answered.

Specification: docs/spec/usage.md#usage.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final
from zoneinfo import ZoneInfo

from msgspec import Struct

from fairlead.errors import UserError
from fairlead.model.usage.ledger import DAY, HOUR, RECORDS_KEPT, SUMS_KEPT, Gap, LedgerBounds
from fairlead.rules.usage.days import day_bounds, days_between, month_bounds, parse_moment

DEFAULT: Final = "24h"
_MINUTE: Final = 60_000
_LENGTH: Final = re.compile(r"([0-9]{1,4})([hd])", re.ASCII)
_HINT: Final = "write 24h, 7d or 30d, a month (month=2026-11), or `from` and `to`"


class Period(Struct, frozen=True):
    """`name`: as it was asked for. Milliseconds UTC."""

    name: str
    start: int
    end: int


def parse_period(words: Mapping[str, str], now: int, zone: ZoneInfo) -> Period:
    """Of `period`, `month`, or `from` and `to`; without any, the last 24 hours. Periods of hours
    and days end with the last whole minute. Raises UserError.

    >>> from fairlead.rules.usage.days import time_zone
    >>> parse_period({"period": "7d"}, 700_000_000_001, time_zone("UTC"))
    Period(name='7d', start=699395160000, end=699999960000)
    """
    given = [name for name in ("period", "month", "from") if words.get(name)]
    if len(given) > 1:
        raise UserError(f"`{given[0]}` and `{given[1]}` are given", f"give one of them: {_HINT}")
    if words.get("to") and not words.get("from"):
        raise UserError("`to` is given without `from`", _HINT)
    if month := words.get("month"):
        found = Period(month, *month_bounds(month, zone))
    elif begin := words.get("from"):
        start = parse_moment(begin)
        found = Period("custom", start, parse_moment(words["to"]) if words.get("to") else now)
        if found.start >= found.end:
            raise UserError(f"`from` `{begin}` is not before the end", "give an earlier `from`")
    else:
        name = words.get("period") or DEFAULT
        end = now // _MINUTE * _MINUTE
        found = Period(name, end - _length(name), end)
    if found.start >= now:
        raise UserError(f"the period `{found.name}` begins in the future", "give an earlier one")
    if found.end - found.start > SUMS_KEPT + DAY:
        raise UserError(
            f"the period `{found.name}` is longer than {SUMS_KEPT // DAY} days",
            f"days are kept for {SUMS_KEPT // DAY} days: ask for a shorter time",
        )
    return found


def _length(name: str) -> int:
    found = _LENGTH.fullmatch(name)
    if found is None or not int(found[1]):
        raise UserError(f"the period `{name[:40]}` is malformed", _HINT)
    return int(found[1]) * (HOUR if found[2] == "h" else 24 * HOUR)


class Piece(Struct, frozen=True):
    """A part of a period. `is_folded`: whole billing days whose sums are stored; else it lies in
    one billing day.
    """

    start: int
    end: int
    is_folded: bool


class PeriodPlan(Struct, frozen=True):
    """How a period is answered. `start`: earlier than asked if the records of its first day are
    gone, so that the whole day counts; `until`: as far as the ledger goes.
    """

    start: int
    until: int
    pieces: tuple[Piece, ...]
    gaps: tuple[Gap, ...]


def plan_of(period: Period, bounds: LedgerBounds, zone: ZoneInfo) -> PeriodPlan:
    """
    >>> from fairlead.rules.usage.days import time_zone
    >>> day = 24 * HOUR
    >>> bounds = LedgerBounds(first=1, heartbeat=3 * day + HOUR, folded_until=2 * day)
    >>> plan = plan_of(Period("custom", HOUR, 9 * day), bounds, time_zone("UTC"))
    >>> [(piece.start // HOUR, piece.end // HOUR, piece.is_folded) for piece in plan.pieces]
    [(1, 24, False), (24, 48, True), (48, 72, False), (72, 73, False)]
    """
    start, until = period.start, min(period.end, bounds.heartbeat)
    if start < until and start < bounds.heartbeat - RECORDS_KEPT:
        start = day_bounds(start, zone)[0]
    pieces: list[Piece] = []
    for begin, end in days_between(start, until, zone):
        is_folded = end <= bounds.folded_until and day_bounds(begin, zone) == (begin, end)
        if is_folded and pieces and pieces[-1].is_folded:
            pieces[-1] = Piece(pieces[-1].start, end, is_folded=True)
        else:
            pieces.append(Piece(begin, end, is_folded))
    gaps = tuple(
        Gap(max(each.started_at, start), min(each.ended_at, until))
        for each in bounds.gaps
        if each.started_at < until and each.ended_at > start
    )
    return PeriodPlan(start, max(start, until), tuple(pieces), gaps)
