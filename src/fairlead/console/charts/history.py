"""The built-in history: the last hour in fixed memory, for charts without Prometheus.

One sample of every line per tick of 15 s of the cluster's clock; a tick without a sample is a gap.
The oldest-seen lines make room when the history is full, so memory never grows past `lines_max *
slots * 4` bytes.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from msgspec import Struct

TICK_SECONDS: Final = 15
SLOTS: Final = 240
LINES_MAX: Final = 20_000

Labels = tuple[tuple[str, str], ...]
"""Label pairs in the order they are shown."""

Point = tuple[float, float | None]
"""(epoch seconds, value or None for a gap)."""


class LineSample(Struct, frozen=True, gc=False):
    """One number of one line; unknown numbers are not sampled at all."""

    query: str
    labels: Labels
    value: float


class _Line:
    """One line's slots; `newest` is the tick last written."""

    __slots__ = ("newest", "slots")

    def __init__(self, slots: int) -> None:
        self.slots = array("f", [math.nan]) * slots
        self.newest = -1

    def write(self, tick: int, value: float) -> None:
        size = len(self.slots)
        # a new line's slots are empty already; of a large cluster ten thousand begin at once
        if self.newest >= 0:
            for missed in range(max(self.newest + 1, tick - size + 1), tick):
                self.slots[missed % size] = math.nan
        self.slots[tick % size] = value
        self.newest = max(self.newest, tick)

    def read(self, tick: int) -> float | None:
        size = len(self.slots)
        if not self.newest - size < tick <= self.newest:
            return None
        value = self.slots[tick % size]
        return None if math.isnan(value) else value


class History:
    """The lines of the last hour by query and labels.

    Times are the cluster clock's; a clock that stands still adds nothing. `is_being_read`: more of
    the past is still to come.
    """

    def __init__(
        self, tick_seconds: int = TICK_SECONDS, slots: int = SLOTS, lines_max: int = LINES_MAX
    ) -> None:
        self.tick_seconds = tick_seconds
        self.slots = slots
        self.lines_max = lines_max
        self._lines: dict[str, dict[Labels, _Line]] = {}
        self._newest = -1
        self.is_being_read = False

    @property
    def line_count(self) -> int:
        return sum(len(lines) for lines in self._lines.values())

    @property
    def seconds(self) -> int:
        return self.tick_seconds * self.slots

    def is_due(self, now: float) -> bool:
        """Whether a tick has begun that is not written yet."""
        return self._tick(now) > self._newest

    def add(self, now: float, samples: Iterable[LineSample], *, is_last: bool = True) -> None:
        """Write one tick, or a part of it. A second call within a tick overwrites.

        Time that runs backwards (another cluster's history) empties this one. `is_last`: room is
        made for what this tick brought.
        """
        tick = self._tick(now)
        if tick < self._newest:
            self._lines.clear()
        self._newest = tick
        for sample in samples:
            if math.isfinite(sample.value):
                self._line(sample).write(tick, sample.value)
        if is_last:
            self._forget(tick)

    def has_room(self, at: float) -> bool:
        """Whether the tick of `at` lies before all ticks of `add` and is not too old."""
        return self._newest - self.slots < self._tick(at) < self._newest

    def add_past(self, at: float, samples: Iterable[LineSample]) -> None:
        """Write a tick that lies before all ticks of `add`.

        One that does not, or that the history has no room for, is left as it is.
        """
        if not self.has_room(at):
            return
        tick = self._tick(at)
        for sample in samples:
            if math.isfinite(sample.value):
                self._line(sample).write(tick, sample.value)

    def read(
        self,
        query: str,
        start: float,
        end: float,
        step: float,
        is_measured: Callable[[Labels], bool] = lambda labels: True,
    ) -> dict[Labels, list[Point]]:
        """Each line of the query as points at `start`, `start + step`, …

        A point is made of the ticks since the point before: of a measured line their mean, of any
        other the last known of them.
        """
        count = int((end - start) // step) + 1
        times = [start + step * number for number in range(count)]
        return {
            labels: [(at, self._value(line, at, step, is_measured(labels))) for at in times]
            for labels, line in self._lines_of(query)
        }

    def ticks(self, query: str, now: float) -> dict[Labels, list[Point]]:
        """Each line of the query as its own ticks, the newest last.

        The tick of `now` may not be written yet.
        """
        last = min(self._tick(now), self._newest)
        ticks = range(last - self.slots + 1, last + 1)
        return {
            labels: [(float(tick * self.tick_seconds), line.read(tick)) for tick in ticks]
            for labels, line in self._lines_of(query)
        }

    def _lines_of(self, query: str) -> Iterable[tuple[Labels, _Line]]:
        """Those of this moment: a thread may read while the loop writes lines that were not there.

        A dictionary is copied in one go. A list of its items is not: for each a tuple is made, and
        whatever the collector then calls may let the other thread go on.
        """
        return self._lines.get(query, {}).copy().items()

    def _value(self, line: _Line, at: float, step: float, is_measured: bool) -> float | None:
        last = self._tick(at)
        first = min(last, self._tick(at - step) + 1)
        known = [value for tick in range(first, last + 1) if (value := line.read(tick)) is not None]
        if not known:
            return None
        return math.fsum(known) / len(known) if is_measured else known[-1]

    def _tick(self, at: float) -> int:
        return int(at // self.tick_seconds)

    def _line(self, sample: LineSample) -> _Line:
        lines = self._lines.setdefault(sample.query, {})
        line = lines.get(sample.labels)
        if line is None:
            line = lines[sample.labels] = _Line(self.slots)
        return line

    def _forget(self, tick: int) -> None:
        """Drop lines silent for the whole history;
        if it is still too full, the ones silent the longest.
        """
        ages = [
            (line.newest, query, labels)
            for query, lines in self._lines.items()
            for labels, line in lines.items()
        ]
        gone = [(query, labels) for newest, query, labels in ages if newest <= tick - self.slots]
        if len(ages) - len(gone) > self.lines_max:
            gone = [
                (query, labels) for _, query, labels in sorted(ages)[: len(ages) - self.lines_max]
            ]
        for query, labels in gone:
            del self._lines[query][labels]


def labelled(labels: Mapping[str, str]) -> Labels:
    return tuple(labels.items())
