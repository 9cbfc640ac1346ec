"""Since when each card is idle, and its idle hours per pod, from the series.

So both are known at the start and after a restart.

Prometheus has the last day; without it the built-in history has an hour. A gap in a series is not
idleness: a card is idle back to the gap and no further.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct, structs

from fairlead.console.boards.idle_cards import IdleHours
from fairlead.console.charts.history import History
from fairlead.console.charts.queries import CHART_QUERIES, Spelling
from fairlead.model.devices.gpu import BUSY_FROM, GpuReading
from fairlead.ports import Series

BUSY_PERCENT: Final = 100 * BUSY_FROM
DAY_SECONDS: Final = 86_400
STEP_SECONDS: Final = 600
SPELLINGS: Final = (
    ("fairlead_gpu_utilization_ratio", BUSY_FROM, "uuid"),
    ("DCGM_FI_DEV_GPU_UTIL", BUSY_PERCENT, "UUID"),
    ("nvidia_gpu_duty_cycle", BUSY_PERCENT, "uuid"),
)
"""Family, the value from which a card is busy, and the label of the card's UUID."""


SAMPLED_SECONDS: Final = 300
"""Resolution of the last day's idle hours; every sample would be too many."""
_OF_HOLDERS: Final = CHART_QUERIES["container-gpu-utilization"]
_WHO: Final = ("namespace", "pod", "uuid")


class IdleTimes(Struct, frozen=True):
    """UUID -> since when the card is idle; `at`: when the series were read. Epoch seconds."""

    at: float = 0.0
    since: Mapping[str, float] = {}


Points = Sequence[tuple[float, float | None]]


def idle_since(points: Points, busy: float, step: float) -> float | None:
    """Since when a card is idle, epoch seconds; None = it is busy, or its newest value is missing.

    A point is the greatest value of the `step` seconds before it, so idleness begins at the start
    of the step of the first idle point.

    >>> idle_since([(0, 0.5), (10, 0.0), (20, 0.0)], 0.01, 10)
    0
    >>> idle_since([(0, 0.0), (10, None), (20, 0.0)], 0.01, 10)
    10
    >>> idle_since([(0, 0.0), (10, 0.7)], 0.01, 10) is None
    True
    """
    since = None
    for at, value in reversed(points):
        if value is None or value >= busy:
            break
        since = at - step
    return since


def idle_in_history(history: History, now: float, before: IdleTimes | None = None) -> IdleTimes:
    """Idle times of the cards that are idle now by the built-in history.

    A card that was idle in all of the history may have been idle before. The earlier time in
    `before` then stays; otherwise the idle time would never exceed an hour.
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
    """PromQL for the greatest value of each step, only of cards
    that were idle for the last hour.
    """
    still = f"max_over_time({family}[1h] @ end()) < {busy:g}"
    return f"max_over_time({family}[{STEP_SECONDS}s]) and on ({label}) ({still})"


async def idle_in_series(series: Series, now: float) -> IdleTimes:
    """Idle times of cards that are idle for an hour or more, up to a day.

    Raises OutsideError if Prometheus does not respond.
    """
    end = float(int(now))
    since: dict[str, float] = {}
    for family, busy, label in SPELLINGS:
        lines = await series.query_range(
            idle_promql(family, busy, label), end - DAY_SECONDS, end, STEP_SECONDS
        )
        for line in lines:
            uuid, found = (
                line.labels.get(label, ""),
                idle_since(_whole(line.points, end), busy, STEP_SECONDS),
            )
            if uuid and found is not None:
                since.setdefault(uuid, found)
    return IdleTimes(now, since)


def _whole(points: Points, end: float) -> Points:
    """The points with the gaps that Prometheus leaves out, back from `end`."""
    by_time = dict(points)
    return [
        (at, by_time.get(at))
        for at in (
            end - back * STEP_SECONDS for back in reversed(range(DAY_SECONDS // STEP_SECONDS + 1))
        )
    ]


def with_longer_idle(gpus: Iterable[GpuReading], times: IdleTimes) -> tuple[GpuReading, ...]:
    """The readings; those of idle cards with the earlier start of their idleness from the series.

    For a card that was busy after the series were read, their value is obsolete.
    """
    return tuple(_longer(each, times.since.get(each.uuid), times.at) for each in gpus)


def _longer(reading: GpuReading, since: float | None, read_at: float) -> GpuReading:
    seen = reading.idle_since
    if seen is None or since is None or seen > read_at or since >= seen:
        return reading
    return structs.replace(reading, idle_since=since)


def idle_hours_in_history(history: History, now: float) -> IdleHours:
    """Hours in which no container of a pod used the card, as far
    back as the built-in history goes.
    """
    busiest: dict[tuple[str, ...], dict[float, float]] = {}
    for labels, points in history.ticks(_OF_HOLDERS.name, now).items():
        line = dict(labels)
        by_tick = busiest.setdefault(tuple(line[name] for name in _WHO), {})
        for at, value in points:
            if value is not None:
                by_tick[at] = max(value, by_tick.get(at, 0.0))
    hours = {
        who: sum(value < BUSY_PERCENT for value in ticks.values()) * history.tick_seconds / 3600
        for who, ticks in busiest.items()
    }
    return IdleHours({who: amount for who, amount in hours.items() if amount})  # type: ignore[misc]


def idle_hours_promql(spelling: Spelling) -> str:
    """How often within a day each pod was seen to do nothing with a card."""
    who = ",".join(theirs for theirs, own in spelling.labels.items() if own in _WHO)
    seen = f"max by ({who}) ({spelling.promql('')}) < {BUSY_PERCENT:g}"
    return f"count_over_time(({seen})[{DAY_SECONDS}s:{SAMPLED_SECONDS}s])"


async def idle_hours_in_series(series: Series, now: float) -> IdleHours:
    """The same of the last day. Raises OutsideError when Prometheus does not answer."""
    end = float(int(now))
    hours: dict[tuple[str, str, str], float] = {}
    # nodes may have other exporters; Fairlead's own comes first
    for spelling in _OF_HOLDERS.spellings:
        spelled = {own: theirs for theirs, own in spelling.labels.items()}
        for line in await series.query_range(
            idle_hours_promql(spelling), end, end, SAMPLED_SECONDS
        ):
            space, pod, uuid = (line.labels.get(spelled[name], "") for name in _WHO)
            if line.points:
                hours.setdefault(
                    (space, pod, uuid), (line.points[-1][1] or 0.0) * SAMPLED_SECONDS / 3600
                )
    return IdleHours(hours)
