"""Billing days: midnight to midnight in a time zone, so 23 or 25 hours when clocks are changed.

The trap: in some zones clocks are changed at midnight, and a day begins at 01:00.
Specification: docs/spec/usage.md#units.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from typing import Final, TypeVar
from zoneinfo import ZoneInfo, available_timezones

from fairlead.errors import UserError

FIRST_YEAR: Final = 1970
"""Earlier times are mistakes: the ledger counts from 1970 on, and zones have no year 0."""
_SECOND: Final = 1000
_ONE_DAY: Final = timedelta(days=1)
Day = TypeVar("Day", bound=date)


@lru_cache(maxsize=64)
def time_zone(name: str) -> ZoneInfo:
    """The zone of this name. Raises UserError with similar names.

    >>> time_zone("Asia/Shanghai").key
    'Asia/Shanghai'
    """
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        near = difflib.get_close_matches(name, sorted(available_timezones()), 3)
        hint = f"did you mean {' or '.join(near)}?" if near else "for example UTC or Asia/Shanghai"
        raise UserError(f"there is no time zone `{name[:100]}`", hint) from error


def day_of(at: int, zone: ZoneInfo) -> date:
    """The billing day in which this time is.

    >>> day_of(1_767_225_600_000, time_zone("Asia/Shanghai"))
    datetime.date(2026, 1, 1)
    """
    return datetime.fromtimestamp(at // _SECOND, zone).date()


@lru_cache(maxsize=4096)
def start_of(day: date, zone: ZoneInfo) -> int:
    """The first moment of a billing day, in milliseconds UTC.

    >>> start_of(date(2026, 1, 1), time_zone("Asia/Shanghai"))
    1767196800000
    >>> cairo = time_zone("Africa/Cairo")  # clocks go from 00:00 to 01:00
    >>> datetime.fromtimestamp(start_of(date(2026, 4, 24), cairo) // 1000, cairo).isoformat()
    '2026-04-24T01:00:00+03:00'
    """
    late = _seconds(day, zone, fold=0)
    if datetime.fromtimestamp(late, zone).time() == time():
        return late * _SECOND
    # Midnight is left out: the day begins when clocks are changed, between these two.
    early = _seconds(day, zone, fold=1)
    while late - early > 1:
        middle = (early + late) // 2
        if datetime.fromtimestamp(middle, zone).date() < day:
            early = middle
        else:
            late = middle
    return late * _SECOND


def _seconds(day: date, zone: ZoneInfo, fold: int) -> int:
    return int(datetime.combine(day, time(fold=fold), zone).timestamp())


def day_bounds(at: int, zone: ZoneInfo) -> tuple[int, int]:
    """The billing day in which this time is: its beginning and its end.

    >>> berlin = time_zone("Europe/Berlin")
    >>> [(b - a) // 3_600_000 for a, b in [day_bounds(1_774_750_000_000, berlin)]]
    [23]
    """
    day = day_of(at, zone)
    return start_of(day, zone), start_of(day + _ONE_DAY, zone)


def days_between(start: int, end: int, zone: ZoneInfo) -> Iterator[tuple[int, int]]:
    """The billing days of a time, each cut at its ends.

    >>> hour = 3_600_000
    >>> list(days_between(hour, 25 * hour, time_zone("UTC")))
    [(3600000, 86400000), (86400000, 90000000)]
    """
    at = start
    while at < end:
        until = min(end, day_bounds(at, zone)[1])
        yield at, until
        at = until


def month_bounds(month: str, zone: ZoneInfo) -> tuple[int, int]:
    """The beginning and the end of a month. Raises UserError for what is no month from 1970 on.

    >>> month_bounds("1970-02", time_zone("UTC"))
    (2678400000, 5097600000)
    """
    try:
        if len(month) != len("2026-11"):
            raise ValueError(month)
        first = _checked(date.fromisoformat(f"{month}-01"))
        after = (first + timedelta(days=31)).replace(day=1)
    except (ValueError, OverflowError) as error:
        raise UserError(f"`{month[:40]}` is no month", "write it as 2026-11") from error
    return start_of(first, zone), start_of(after, zone)


def day_start_fault(at: int, zone: ZoneInfo) -> str:
    """Why a price cannot begin at this time: "" = it is the beginning of a billing day.

    >>> day_start_fault(86_400_000, time_zone("UTC"))
    ''
    >>> day_start_fault(90_000_000, time_zone("UTC"))
    'nearest beginnings: 1970-01-02T00:00:00+00:00 and 1970-01-03T00:00:00+00:00'
    """
    start, end = day_bounds(at, zone)
    if start == at:
        return ""
    return f"nearest beginnings: {_local(start, zone)} and {_local(end, zone)}"


def parse_day_start(text: str, zone: ZoneInfo) -> int:
    """A date, for the beginning of its billing day, or a time with its zone. Raises UserError.

    >>> parse_day_start("1970-01-02", time_zone("UTC")), parse_moment("1970-01-02T00:00:00Z")
    (86400000, 86400000)
    """
    try:
        return start_of(_checked(date.fromisoformat(text)), zone)
    except (ValueError, OverflowError):
        return parse_moment(text, "a date such as 2026-11-01, or ")


def parse_moment(text: str, more: str = "") -> int:
    """RFC 3339 with its zone, from 1970 on. `more`: of the hint. Raises UserError."""
    try:
        found = datetime.fromisoformat(text)
        if found.tzinfo is None:
            raise ValueError(text)
        _checked(found)
        return round(found.astimezone(UTC).timestamp() * _SECOND)
    except (ValueError, OverflowError) as error:
        hint = f"write {more}a time with its zone, such as 2026-11-01T00:00:00Z"
        raise UserError(f"`{text[:60]}` is no time", hint) from error


def _checked(found: Day) -> Day:
    """ValueError for a day before 1970."""
    if found.year < FIRST_YEAR:
        raise ValueError(found)
    return found


def _local(at: int, zone: ZoneInfo) -> str:
    return datetime.fromtimestamp(at // _SECOND, zone).isoformat()
