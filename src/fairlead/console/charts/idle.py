"""Since when each card does nothing, and how long it did nothing for whom, from the series.

So it is known at the first look and after a restart.

Prometheus has the last day; without it the built-in history has its hour. A gap in a series is not idleness:
a card is idle back to the gap and no further.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct, structs

from fairlead.console.boards.idle_cards import IdleHours
from fairlead.console.charts.history import History
from fairlead.console.charts.queries import CHART_QUERIES, Spelling
from fairlead.model.devices.gpu import GpuReading
from fairlead.ports import Series

BUSY_PERCENT: Final = 1.0
"""From here on a card does something (docs/spec/console.md#cluster-page: idle is below 1 %)."""
DAY_SECONDS: Final = 86_400
STEP_SECONDS: Final = 600
SPELLINGS: Final = (
    ("fairlead_gpu_utilization_ratio", 0.01, "uuid"),
    ("DCGM_FI_DEV_GPU_UTIL", 1, "UUID"),
    ("nvidia_gpu_duty_cycle", 1, "uuid"),
)
"""Family, from which value on it is busy, and its label of the card's UUID."""


SAMPLED_SECONDS: Final = 300
"""How often it is looked at what somebody did with a card within a day; every sample would be too many."""
_OF_HOLDERS: Final = CHART_QUERIES["container-gpu-utilization"]
_WHO: Final = ("namespace", "pod", "uuid")


class IdleTimes(Struct, frozen=True):
    """UUID -> since when the card is idle, as the series told it at `at`, epoch seconds."""

    at: float = 0.0
    since: Mapping[str, float] = {}


Points = Sequence[tuple[float, float | None]]


def idle_since(points: Points, busy: float, step: float) -> float | None:
    """Since when a card is idle, epoch seconds; None = it is busy, or its newest value is missing.

    A point says the greatest value of the `step` seconds before it, so idleness begins where the step of the
    first idle point does.

    >>> idle_since([(0, 0.5), (10, 0.0), (20, 0.0)], 0.01, 10)
    0
    >>> idle_since([(0, 0.0), (10, None), (20, 0.0)], 0.01, 10), idle_since([(0, 0.0), (10, 0.7)], 0.01, 10)
    (10, None)
    """
    since = None
    for at, value in reversed(points):
        if value is None or value >= busy:
            break
        since = at - step
    return since


def idle_in_history(history: History, now: float, before: IdleTimes | None = None) -> IdleTimes:
    """Of the cards of which the built-in history knows that they are idle now.

    One that was idle in all of it may have been before. What was told of that last time, `before`, stays;
    else it would be idle for just an hour again and again.
    """
    known = before or IdleTimes()
    found = {}
    for labels, points in history.ticks("gpu-duty-cycle", now).items():
        since = idle_since(points, BUSY_PERCENT, 0)
        if since is None:
            continue
        uuid = dict(labels)["uuid"]
        reaches_back = since == points[0][0] <= known.at + history.tick_seconds
        found[uuid] = min(since, known.since.get(uuid, since)) if reaches_back else since
    return IdleTimes(now, found)


def idle_promql(family: str, busy: float, label: str) -> str:
    """The greatest value of each step, of cards alone that were idle all the last hour."""
    still = f"max_over_time({family}[1h] @ end()) < {busy}"
    return f"max_over_time({family}[{STEP_SECONDS}s]) and on ({label}) ({still})"


async def idle_in_series(series: Series, now: float) -> IdleTimes:
    """Of cards idle for an hour and more, as far back as a day.

    Raises OutsideError when Prometheus does not answer.
    """
    end = float(int(now))
    since: dict[str, float] = {}
    for family, busy, label in SPELLINGS:
        lines = await series.query_range(idle_promql(family, busy, label), end - DAY_SECONDS, end, STEP_SECONDS)
        for line in lines:
            uuid, found = line.labels.get(label, ""), idle_since(_whole(line.points, end), busy, STEP_SECONDS)
            if uuid and found is not None:
                since.setdefault(uuid, found)
    return IdleTimes(now, since)


def _whole(points: Points, end: float) -> Points:
    """The points with the gaps that Prometheus leaves out, back from `end`."""
    by_time = dict(points)
    return [(at, by_time.get(at)) for at in (end - back * STEP_SECONDS for back in reversed(range(DAY_SECONDS // STEP_SECONDS + 1)))]


def with_longer_idle(gpus: Iterable[GpuReading], times: IdleTimes) -> tuple[GpuReading, ...]:
    """The readings, those of idle cards with what the series know of the time before they were read first.

    Of a card that has been busy since the series were asked their answer says nothing any more.
    """
    return tuple(_longer(each, times.since.get(each.uuid), times.at) for each in gpus)


def _longer(reading: GpuReading, since: float | None, told_at: float) -> GpuReading:
    seen = reading.idle_since
    if seen is None or since is None or seen > told_at or since >= seen:
        return reading
    return structs.replace(reading, idle_since=since)


def idle_hours_in_history(history: History, now: float) -> IdleHours:
    """Hours in which nobody of a pod's containers used the card, as far back as the built-in history goes."""
    busiest: dict[tuple[str, ...], dict[float, float]] = {}
    for labels, points in history.ticks(_OF_HOLDERS.name, now).items():
        told = dict(labels)
        by_tick = busiest.setdefault(tuple(told[name] for name in _WHO), {})
        for at, value in points:
            if value is not None:
                by_tick[at] = max(value, by_tick.get(at, 0.0))
    hours = {who: sum(value < BUSY_PERCENT for value in ticks.values()) * history.tick_seconds / 3600 for who, ticks in busiest.items()}
    return IdleHours({who: told for who, told in hours.items() if told})  # type: ignore[misc]


def idle_hours_promql(spelling: Spelling) -> str:
    """How often within a day each pod was seen to do nothing with a card."""
    who = ",".join(theirs for theirs, ours in spelling.labels.items() if ours in _WHO)
    seen = f"max by ({who}) ({spelling.promql('')}) < {BUSY_PERCENT}"
    return f"count_over_time(({seen})[{DAY_SECONDS}s:{SAMPLED_SECONDS}s])"


async def idle_hours_in_series(series: Series, now: float) -> IdleHours:
    """The same of the last day. Raises OutsideError when Prometheus does not answer."""
    end = float(int(now))
    told: dict[tuple[str, str, str], float] = {}
    for spelling in _OF_HOLDERS.spellings:  # nodes may have other exporters; what ours says of a card counts
        ours = {ours: theirs for theirs, ours in spelling.labels.items()}
        for line in await series.query_range(idle_hours_promql(spelling), end, end, SAMPLED_SECONDS):
            space, pod, uuid = (line.labels.get(ours[name], "") for name in _WHO)
            if line.points:
                told.setdefault((space, pod, uuid), (line.points[-1][1] or 0.0) * SAMPLED_SECONDS / 3600)
    return IdleHours(told)
