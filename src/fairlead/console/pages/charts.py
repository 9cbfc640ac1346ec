"""The form of a chart: points of (milliseconds, value or null), unit, source and query.

A gap is a null point, never a missing one: every line of one answer has the same number of points.
"""

from __future__ import annotations

from fairlead.console.pages.envelope import Envelope, Json

Point = tuple[int, float | None]


class ChartLine(Json, frozen=True):
    labels: dict[str, str]
    points: list[Point]


class Chart(Envelope, frozen=True):
    """`total` lines exist, `shown` of them (the top by mean) are here.

    `source`: `prometheus`, `built-in` or `none`. `step` in seconds. `query` is the PromQL that
    answered, or the words of the built-in series.
    """

    title: str
    unit: str
    series: list[ChartLine]
    total: int
    shown: int
    source: str
    query: str
    step: int
