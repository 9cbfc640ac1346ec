"""The lines of a chart: a named query, answered by Prometheus or by the built-in history.

The history never stands in for a Prometheus that fails: two sources of different age and reach in
one chart would mislead. A failing Prometheus is an error that names it.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from fairlead.console.charts.history import History
from fairlead.console.charts.queries import HOLDER, ChartQuery, Spelling
from fairlead.console.charts.request import (
    ChartRequest,
    beginning_promql,
    mean_promql,
    promql_of,
    top_lines_promql,
)
from fairlead.console.pages.charts import ChartLine, Point
from fairlead.ports import Series, SeriesLine

OUTSIDE_SECONDS: Final = 10.0
PROMETHEUS: Final = "prometheus"
BUILT_IN: Final = "built-in"


class Lines(Struct, frozen=True):
    """What a source answered: the top lines, how many there are in all, and the query behind them.

    `is_beginning`: the first point is still to come.
    """

    lines: list[ChartLine]
    total: int
    source: str
    query: str
    is_beginning: bool = False


async def prometheus_lines(series: Series, query: ChartQuery, request: ChartRequest) -> Lines:
    """The lines of the first spelling with data. Raises OutsideError, or TimeoutError after 10 s.

    Points are at whole steps, so Fairlead's own families may exist without a point yet: then the
    answer is empty with a warning. Another spelling in between would change the chart's source for
    a moment.
    """
    try:
        async with asyncio.timeout(OUTSIDE_SECONDS):
            return await _first_lines(series, query, request)
    except TimeoutError:
        raise TimeoutError(
            f"Prometheus did not answer the chart `{query.name}` within {OUTSIDE_SECONDS:.0f} s"
        ) from None


async def _first_lines(series: Series, query: ChartQuery, request: ChartRequest) -> Lines:
    own, *others = query.spellings
    found = await _spelling_lines(series, own, request)
    if found is not None:
        return found
    tried = promql_of(request, own)
    if await series.query_range(
        beginning_promql(tried), request.until, request.until, request.step
    ):
        return Lines([], 0, PROMETHEUS, tried, is_beginning=True)
    for spelling in others:
        found = await _spelling_lines(series, spelling, request)
        if found is not None:
            return found
    return Lines([], 0, PROMETHEUS, tried)


async def _spelling_lines(
    series: Series, spelling: Spelling, request: ChartRequest
) -> Lines | None:
    expression = promql_of(request, spelling)
    shown = await series.query_range(
        top_lines_promql(expression, request, spelling), request.start, request.end, request.step
    )
    if not shown:
        return None
    total = len(shown)
    if total >= request.top:
        counted = await series.query_range(
            f"count({mean_promql(expression, request)})", request.end, request.end, request.step
        )
        total = max(total, int(_last_value(counted)))
    lines = [_chart_line(line, spelling.labels, request) for line in shown]
    return Lines(by_mean(lines)[: request.top], total, PROMETHEUS, expression)


def _last_value(lines: Sequence[SeriesLine]) -> float:
    values = [value for line in lines for _, value in line.points if value is not None]
    return values[-1] if values else 0.0


def _chart_line(line: SeriesLine, labels: Mapping[str, str], request: ChartRequest) -> ChartLine:
    """Our labels, and a point (or a gap) at every step."""
    by_step = {round((at - request.start) / request.step): value for at, value in line.points}
    values = [by_step.get(number) for number in range(_count(request))]
    renamed = {
        own: line.labels[theirs] for theirs, own in labels.items() if line.labels.get(theirs)
    }
    return ChartLine(labels=renamed, points=_points(values, request))


def history_lines(history: History, query: ChartQuery, request: ChartRequest) -> Lines:
    """The lines as the built-in history has them."""
    found = history.read(
        query.name,
        request.start,
        request.end,
        request.step,
        lambda labels: query.is_measured(dict(labels)),
    )
    lines = [
        ChartLine(labels=dict(labels), points=_points([value for _, value in points], request))
        for labels, points in found.items()
        if is_wanted(dict(labels), request.filters)
        and any(value is not None for _, value in points)
    ]
    words = (
        f"{query.words}, sampled by this server every {history.tick_seconds} s, the last "
        f"{history.seconds // 60} min"
    )
    return Lines(by_mean(lines)[: request.top], len(lines), BUILT_IN, words)


def is_wanted(labels: Mapping[str, str], filters: Mapping[str, tuple[str, ...]]) -> bool:
    """Whether a line with these labels is among what the filters let through."""
    who = {**labels, HOLDER: f"{labels.get('namespace')}/{labels.get('pod')}"}
    among = {
        label: who.get(label, "").lower() in {value.lower() for value in values}
        for label, values in filters.items()
    }
    cards = [among.pop(label) for label in ("gpu", "uuid") if label in among]
    return all(among.values()) and (any(cards) or not cards)


def by_mean(lines: Iterable[ChartLine]) -> list[ChartLine]:
    """Highest mean first; equal means by labels, so that a reload keeps the order."""
    return sorted(lines, key=lambda line: (-_mean(line.points), sorted(line.labels.items())))


def _mean(points: Sequence[Point]) -> float:
    known = [value for _, value in points if value is not None]
    return math.fsum(known) / len(known) if known else -math.inf


def _count(request: ChartRequest) -> int:
    return int((request.end - request.start) // request.step) + 1


def _points(values: Sequence[float | None], request: ChartRequest) -> list[Point]:
    return [
        (int((request.start + request.step * number) * 1000), rounded(value))
        for number, value in enumerate(values)
    ]


def rounded(value: float | None) -> float | None:
    """Four significant decimals are enough for a screen; what is no number is a gap.

    >>> rounded(33.3333333), rounded(math.nan), rounded(None)
    (33.3333, None, None)
    """
    return round(value, 4) if value is not None and math.isfinite(value) else None
