"""Charts: lines of the history or of Prometheus, and the heatmap."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from fairlead.console.boards.board_state import BoardState
from fairlead.console.charts.answer import chart_answer, heatmap
from fairlead.console.charts.charts import (
    BUILT_IN,
    PROMETHEUS,
    Lines,
    history_lines,
    prometheus_lines,
)
from fairlead.console.charts.queries import CHART_NAMES, CHART_QUERIES, HEATMAP, ChartQuery
from fairlead.console.charts.request import (
    ChartRequest,
    parse_chart_request,
    parse_heatmap_filters,
)
from fairlead.console.charts.restricted import OF_ALL_TEAMS, ChartReach
from fairlead.console.http.answers import Refused, json_answer
from fairlead.console.http.routes.console import Answering, Console, states_of
from fairlead.console.http.subjects import (
    subject_of,
)
from fairlead.console.pages.endpoints import Endpoint
from fairlead.model.people.reach import reach_of


async def chart(console: Console, request: Request, endpoint: Endpoint) -> Response:
    name = request.path_params["query"]
    parameters = request.query_params.multi_items()
    if name == HEATMAP:
        filters = parse_heatmap_filters(parameters)
        return json_answer(request, heatmap(await states_of(console, request).latest(), filters))
    query = CHART_QUERIES.get(name)
    if query is None:
        raise Refused(
            404,
            f"there is no chart `{name[:80]}`",
            f"charts: {', '.join(f'`{each}`' for each in CHART_NAMES)}",
        )
    asked = parse_chart_request(parameters, query, console.world.clock.now())
    board_state = await states_of(console, request).latest()
    lines = await _lines(console, query, asked, _chart_reach(request, board_state))
    return json_answer(request, chart_answer(query, asked, lines, board_state, console.history))


def _chart_reach(request: Request, board_state: BoardState) -> ChartReach | None:
    reach, root = reach_of(subject_of(request)), board_state.snapshot.quota
    if reach is None:
        return None
    paths = frozenset(node.path for node in root.walk()) if root else frozenset[str]()
    return ChartReach(reach.namespaces, paths)


async def _lines(
    console: Console, query: ChartQuery, asked: ChartRequest, reach: ChartReach | None
) -> Lines:
    """`reach` None: of all tenants."""
    if reach is None:
        return await _lines_of_all(console, query, asked)
    if query.name in OF_ALL_TEAMS:
        raise Refused(
            403, f"`{query.name}` counts the jobs of all teams", "look at the list of your jobs"
        )
    narrowed = reach.restrict(query, asked)
    if narrowed is None:
        source = BUILT_IN if console.world.series is None else PROMETHEUS
        return Lines([], 0, source, query.words)
    return reach.seen(await _lines_of_all(console, *narrowed))


async def _lines_of_all(console: Console, query: ChartQuery, asked: ChartRequest) -> Lines:
    if console.world.series is not None:
        return await prometheus_lines(console.world.series, query, asked)
    return history_lines(console.history, query, asked)


ANSWERS: Final[dict[str, Answering]] = {
    "chart": chart,
}
"""By the name of their endpoint."""
