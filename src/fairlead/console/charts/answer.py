"""The answer of a chart: its lines, why it is empty or shorter than asked, and how fresh it is.

The heat map of all GPUs is here too: it is a chart by address only, and comes from the board state.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from fairlead.console.boards.board_state import BoardState
from fairlead.console.charts.charts import BUILT_IN, Lines, is_wanted, rounded
from fairlead.console.charts.history import History
from fairlead.console.charts.queries import ChartQuery
from fairlead.console.charts.request import ChartRequest
from fairlead.console.pages.charts import Chart, ChartLine, Point
from fairlead.console.pages.envelope import Scalar, Warning, percent
from fairlead.model.occupancy import NodeOccupancy


def chart_answer(
    query: ChartQuery, asked: ChartRequest, lines: Lines, board_state: BoardState, history: History
) -> Chart:
    return Chart(
        generated_at=board_state.generated_at,
        stale=board_state.is_stale("gpus"),
        version=board_state.version("gpus"),
        warnings=[
            *_why_empty(query, lines, board_state),
            *_why_short(query, lines, asked, history),
        ],
        title=query.title,
        unit=query.unit,
        series=lines.lines,
        total=lines.total,
        shown=len(lines.lines),
        source=lines.source,
        query=lines.query,
        step=asked.step,
    )


def _why_empty(query: ChartQuery, lines: Lines, board_state: BoardState) -> list[Warning]:
    if lines.lines:
        return []
    if lines.is_beginning:
        message = f"the first values of `{query.name}` are being read"
        return [
            Warning(
                code="cache-syncing",
                source=lines.source,
                message=message,
                hint="wait for the first samples",
            )
        ]
    if lines.source == BUILT_IN and not query.is_kept:
        message = f"only a Prometheus keeps `{query.name}`"
        return [
            Warning(
                code="history-none",
                source=BUILT_IN,
                message=message,
                hint="start the console with `--prometheus URL`",
            )
        ]
    silent = [
        each for each in board_state.warnings("gpus") if each.code == "prometheus-unreachable"
    ]
    if silent:
        return silent
    hint = (
        "wait for the first samples"
        if lines.source == BUILT_IN
        else "look at the query behind the chart"
    )
    values: dict[str, Scalar] = {"query": query.name}
    return [
        Warning(
            code="chart-empty",
            source=lines.source,
            message=f"there is no data for `{query.name}`",
            hint=hint,
            values=values,
        )
    ]


def _why_short(
    query: ChartQuery, lines: Lines, asked: ChartRequest, history: History
) -> list[Warning]:
    if lines.source != BUILT_IN or not query.is_kept:
        return []
    if history.is_being_read:
        message = "what was before this server began is still being read"
        return [
            Warning(
                code="history-syncing",
                source=BUILT_IN,
                message=message,
                hint="the chart fills by itself",
            )
        ]
    if asked.seconds <= history.seconds:
        return []
    minutes = history.seconds // 60
    return [
        Warning(
            code="history-off",
            source=BUILT_IN,
            message=f"without Prometheus the last {minutes} minutes are kept",
            hint="configure Prometheus for a longer history",
            values={"minutes": minutes},
        )
    ]


def heatmap(
    board_state: BoardState, filters: Mapping[str, tuple[str, ...]] = MappingProxyType({})
) -> Chart:
    """The latest utilization of every GPU:
    one line per node, and a point per card as (index, value).
    """
    heat = ((each.node.name, _heat(each, filters)) for each in board_state.occupancy.nodes)
    lines = [
        ChartLine(labels={"node": node}, points=points)
        for node, points in heat
        if points or not filters
    ]
    return Chart(
        generated_at=board_state.generated_at,
        stale=board_state.is_stale("gpus"),
        version=board_state.version("gpus"),
        warnings=board_state.warnings("gpus"),
        title="GPU Heat Map",
        unit="percent",
        series=lines,
        total=len(lines),
        shown=len(lines),
        source=BUILT_IN,
        query=(
            "the newest utilization of every GPU: "
            "each line is a node, each point (card index, percent)"
        ),
        step=0,
    )


def _heat(occupied: NodeOccupancy, filters: Mapping[str, tuple[str, ...]]) -> list[Point]:
    return [
        (card.index, rounded(percent(card.reading.utilization_ratio) if card.reading else None))
        for card in occupied.cards
        if not filters
        or is_wanted({"node": card.node, "gpu": str(card.index), "uuid": card.uuid}, filters)
    ]
