"""When does a cron schedule strike? Five fields (`*/5 8-18 * * mon-fri`) or `@hourly` and its like, in UTC. Pure.

As in every cron: where day of month and day of week are both restricted, either is enough.
"""

from __future__ import annotations

from calendar import timegm
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

_SHORT = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_BOUNDS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))
_LONGEST = timedelta(days=5 * 366)


@dataclass(frozen=True, slots=True)
class Schedule:
    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    either_day: bool

    def next_after(self, at: float) -> float | None:
        """The first strike later than `at` (epoch seconds); None if there is none within five years (31 February)."""
        time = datetime.fromtimestamp(at, UTC).replace(second=0, microsecond=0) + timedelta(minutes=1)
        end = time + _LONGEST
        while time < end:
            if time.month not in self.months or not self._is_day(time):
                time = time.replace(hour=0, minute=0) + timedelta(days=1)
            elif time.hour not in self.hours:
                time = time.replace(minute=0) + timedelta(hours=1)
            elif time.minute not in self.minutes:
                time += timedelta(minutes=1)
            else:
                return float(timegm(time.timetuple()))
        return None

    def _is_day(self, time: datetime) -> bool:
        by_date, by_week = time.day in self.days, time.isoweekday() % 7 in self.weekdays
        return by_date or by_week if self.either_day else by_date and by_week


def parse_schedule(text: str) -> Schedule:
    """Raises ValueError with what is wrong.

    >>> parse_schedule("*/15 * * * *").next_after(0.0), parse_schedule("0 12 1 jan *").next_after(0.0)
    (900.0, 43200.0)
    """
    fields = _SHORT.get(text.strip(), text).split()
    if len(fields) != 5:
        raise ValueError(f"expected exactly 5 fields, found {len(fields)}: [{text}]")
    names = ((), (), (), _MONTHS, _DAYS)
    sets = [_field(field, *bounds, name) for field, bounds, name in zip(fields, _BOUNDS, names, strict=True)]
    minutes, hours, days, months, weekdays = sets
    return Schedule(minutes, hours, days, months, weekdays, fields[2][0] not in "*?" and fields[4][0] not in "*?")


def _field(text: str, low: int, high: int, names: tuple[str, ...]) -> frozenset[int]:
    values: set[int] = set()
    for part in text.lower().split(","):
        span, _, step = part.partition("/")
        first, dash, last = span.partition("-")
        if first in ("*", "?"):
            begin, end = low, high
        else:
            begin = _number(first, low, names)
            end = _number(last, low, names) if dash else high if step else begin
        stride = int(step) if step.isdigit() else 0 if step else 1
        if not low <= begin <= end <= high + (names is _DAYS) or not stride:
            raise ValueError(f"`{part}` is not within {low}-{high}")
        values |= {value % 7 if names is _DAYS else value for value in range(begin, end + 1, stride)}
    return frozenset(values)


def _number(text: str, low: int, names: tuple[str, ...]) -> int:
    if text in names:
        return names.index(text) + low
    if not text.isdigit():
        raise ValueError(f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": invalid syntax')
    return int(text)
