"""Parses cron schedules and finds their next times, in the format of robfig/cron v3.

The function there is `ParseStandard`.

CronJobs and KubeDL's Crons have this format: five fields (`*/5 8-18 * * mon-fri`), a word
(`@hourly`), or a fixed interval since the last time (`@every 1h30m`), optionally after a time zone
(`TZ=Asia/Shanghai 0 22 * * *`). Time zones are those of Python's `zoneinfo`; the default is UTC.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

_WORDS: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_EVERY: Final = "@every "
_MONTHS: Final = (
    "jan",
    "feb",
    "mar",
    "apr",
    "may",
    "jun",
    "jul",
    "aug",
    "sep",
    "oct",
    "nov",
    "dec",
)
_DAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_LONGEST_SEARCH_YEARS: Final = 5
_LARGEST: Final = (1 << 63) - 1
_NANOSECONDS: Final = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_PART: Final = re.compile(r"([0-9]*)(?:\.([0-9]*))?([^0-9.]*)")


class _Bounds(NamedTuple):
    low: int
    high: int
    names: tuple[str, ...] = ()


_FIELDS: Final = (
    _Bounds(0, 59),
    _Bounds(0, 23),
    _Bounds(1, 31),
    _Bounds(1, 12, _MONTHS),
    _Bounds(0, 6, _DAYS),
)


@dataclass(frozen=True, slots=True)
class IntervalSchedule:
    """`@every`: a fixed interval after the last time.

    The shortest interval is a second; fractions of a second are dropped.
    """

    seconds: int

    def next_after(self, at: float) -> float:
        """The next time in epoch seconds, if the last one was `at`."""
        return float(int(at) + self.seconds)


@dataclass(frozen=True, slots=True)
class Fields:
    """Five fields, each with its allowed values.

    If both day of month and day of week are restricted, either of them suffices (`either_day`), as
    in every cron.
    """

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    either_day: bool
    zone: tzinfo = UTC

    def next_after(self, at: float) -> float | None:
        """The first time later than `at`, in epoch seconds.

        None if there is none in this year and the next five (31 February).
        """
        moment = (int(at) // 60 + 1) * 60
        last_year = self._wall(moment).year + _LONGEST_SEARCH_YEARS
        while (wall := self._wall(moment)).year <= last_year:
            if wall.month not in self.months or not self._is_day(wall):
                moment = self._next_midnight(wall)
            elif wall.hour not in self.hours:
                moment += (60 - wall.minute) * 60
            elif wall.minute not in self.minutes:
                moment += 60
            else:
                return float(moment)
        return None

    def _wall(self, moment: int) -> datetime:
        return datetime.fromtimestamp(moment, self.zone)

    def _next_midnight(self, wall: datetime) -> int:
        """The next midnight; the first hour of the day where summer time skips it."""
        return int((wall.replace(hour=0, minute=0, fold=0) + timedelta(days=1)).timestamp())

    def _is_day(self, wall: datetime) -> bool:
        by_date, by_week = wall.day in self.days, wall.isoweekday() % 7 in self.weekdays
        return by_date or by_week if self.either_day else by_date and by_week


Schedule = Fields | IntervalSchedule


def parse_schedule(text: str) -> Schedule:
    """The schedule. Raises ValueError with robfig's message.

    >>> parse_schedule("*/15 * * * *").next_after(0.0)
    900.0
    >>> parse_schedule("0 12 1 jan *").next_after(0.0)
    43200.0
    >>> parse_schedule("@every 1h30m").next_after(60.5)
    5460.0
    """
    if not text:
        raise ValueError("empty spec string")
    zone: tzinfo = UTC
    if text.startswith(("TZ=", "CRON_TZ=")):
        name, space, rest = text.partition("=")[2].partition(" ")
        if not space:
            raise ValueError(
                "invalid schedule format: runtime error: slice bounds out of range [:-1]"
            )
        zone, text = _zone(name), rest.strip()
    if not text.startswith("@"):
        return _fields(text, zone)
    if text in _WORDS:
        return _fields(_WORDS[text], zone)
    if text.startswith(_EVERY):
        return _paced(text)
    raise ValueError(f"unrecognized descriptor: {text}")


def find_zone(name: str) -> tzinfo | None:
    """The time zone of this name by Go's rules; None if there is none.

    "" is UTC, and so is `Local`, the server's own zone.
    """
    if name in ("", "UTC", "Local"):
        return UTC
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return None


def _zone(name: str) -> tzinfo:
    zone = find_zone(name)
    if zone is None:
        raise ValueError(f"provided bad location {name}: unknown time zone {name}")
    return zone


def _fields(text: str, zone: tzinfo) -> Fields:
    fields = text.split()
    if len(fields) != len(_FIELDS):
        raise ValueError(f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]")
    (minutes, _), (hours, _), (days, is_any_day), (months, _), (weekdays, is_any_weekday) = map(
        _field, fields, _FIELDS
    )
    return Fields(
        minutes, hours, days, months, weekdays, not is_any_day and not is_any_weekday, zone
    )


def _field(text: str, bounds: _Bounds) -> tuple[frozenset[int], bool]:
    """The allowed values, and whether the field has a star, which allows all: `*/2` has none."""
    ranges = [_range(part, bounds) for part in text.split(",") if part]
    return frozenset(value for values, _ in ranges for value in values), any(
        is_any for _, is_any in ranges
    )


def _range(text: str, bounds: _Bounds) -> tuple[range, bool]:
    span, *steps = text.split("/")
    first, *others = span.split("-")
    is_star = first in ("*", "?")
    begin, end = (bounds.low, bounds.high) if is_star else _ends(text, first, others, bounds)
    if len(steps) > 1:
        raise ValueError(f"too many slashes: {text}")
    step = _number(steps[0]) if steps else 1
    if steps and not others:
        end = bounds.high
    if begin < bounds.low:
        raise ValueError(f"beginning of range ({begin}) below minimum ({bounds.low}): {text}")
    if end > bounds.high:
        raise ValueError(f"end of range ({end}) above maximum ({bounds.high}): {text}")
    if begin > end:
        raise ValueError(f"beginning of range ({begin}) beyond end of range ({end}): {text}")
    if not step:
        raise ValueError(f"step of range should be a positive number: {text}")
    return range(begin, end + 1, step), is_star and step == 1


def _ends(text: str, first: str, others: list[str], bounds: _Bounds) -> tuple[int, int]:
    begin = _number_or_name(first, bounds)
    if len(others) > 1:
        raise ValueError(f"too many hyphens: {text}")
    return begin, _number_or_name(others[0], bounds) if others else begin


def _number_or_name(text: str, bounds: _Bounds) -> int:
    name = text.lower()
    return bounds.names.index(name) + bounds.low if name in bounds.names else _number(text)


def _number(text: str) -> int:
    fault = "" if re.fullmatch(r"[-+]?[0-9]+", text) else "invalid syntax"
    if not fault and not -_LARGEST - 1 <= int(text) <= _LARGEST:
        fault = "value out of range"
    if fault:
        raise ValueError(
            f"failed to parse int from {text}: strconv.Atoi: parsing {_quoted(text)}: {fault}"
        )
    if int(text) < 0:
        raise ValueError(f"negative number ({int(text)}) not allowed: {text}")
    return int(text)


def _paced(text: str) -> IntervalSchedule:
    try:
        return IntervalSchedule(max(1, _go_duration(text.removeprefix(_EVERY)) // 10**9))
    except ValueError as error:
        raise ValueError(f"failed to parse duration {text}: time: {error}") from None


def _go_duration(text: str) -> int:
    """Nanoseconds of `1h30m`, `1.5s`, `-300ms`.

    Rules and errors are those of Go's `time.ParseDuration`.
    """
    invalid = ValueError(f"invalid duration {_quoted(text)}")
    rest = text[1:] if text[:1] in ("-", "+") else text
    if rest == "0":
        return 0
    if not rest:
        raise invalid
    total = 0
    while rest:
        match = _PART.match(rest)
        assert match is not None  # everything in it may be missing
        whole, fraction, unit = match.groups()
        if not whole and not fraction:
            raise invalid
        if not unit:
            raise ValueError(f"missing unit in duration {_quoted(text)}")
        if unit not in _NANOSECONDS:
            raise ValueError(f"unknown unit {_quoted(unit)} in duration {_quoted(text)}")
        total += int(whole or 0) * _NANOSECONDS[unit] + int(fraction or 0) * _NANOSECONDS[
            unit
        ] // 10 ** len(fraction or "")
        rest = rest[match.end() :]
    if total > _LARGEST + (text[0] == "-"):
        raise invalid
    return -total if text[0] == "-" else total


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
