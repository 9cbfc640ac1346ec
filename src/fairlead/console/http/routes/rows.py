"""Pages of rows: one page in its envelope, or all matching rows as CSV."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final, cast

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from fairlead.console.boards.board_state import BoardState
from fairlead.console.boards.rows import RowSet, matching, page_of
from fairlead.console.http.answers import bytes_answer, json_answer
from fairlead.console.pages.csv_table import render_csv
from fairlead.console.pages.endpoints import Endpoint
from fairlead.console.pages.envelope import Sentence, Warning
from fairlead.console.pages.list_query import ListQuery, parse_list_query

_CSV: Final = "text/csv; charset=utf-8"


def list_answer(
    request: Request,
    endpoint: Endpoint,
    board_state: BoardState,
    rows: RowSet[Any],
    sentence: Sentence,
    answer_type: Any,
    page: str,
    more: dict[str, Any] | None = None,
    query: ListQuery | None = None,
    beside: Sequence[Warning] = (),
) -> Response:
    """One page of rows in its envelope, or all matching rows as CSV.

    `query`: of who has read it already. `beside`: warnings of what the route asked for itself.
    """
    query = query or parse_list_query(request.query_params.multi_items(), endpoint)
    envelope = (
        board_state.generated_at,
        board_state.is_stale(page),
        board_state.version(page),
        [*board_state.warnings(page, query.filters.get("job_type", ())), *beside],
    )
    return rows_answer(request, endpoint, query, rows, sentence, answer_type, envelope, more)


async def long_list_answer(
    request: Request,
    endpoint: Endpoint,
    board_state: BoardState,
    rows: RowSet[Any],
    sentence: Sentence,
    answer_type: Any,
    page: str,
) -> Response:
    """The same of a list that may have 50,000 rows: sought in a thread, because other requests must
    not wait for it, but answered at once if the same rows were found for another client.
    """
    query = parse_list_query(request.query_params.multi_items(), endpoint)

    def answer() -> Response:
        return list_answer(
            request, endpoint, board_state, rows, sentence, answer_type, page, query=query
        )

    if rows.has_found(query) and not query.as_csv:
        return answer()
    return await asyncio.to_thread(answer)


def rows_answer(
    request: Request,
    endpoint: Endpoint,
    query: ListQuery,
    rows: RowSet[Any],
    sentence: Sentence,
    answer_type: Any,
    envelope: tuple[str, bool, str, list[Warning]],
    more: dict[str, Any] | None = None,
) -> Response:
    """The same with the values of its envelope."""
    found = matching(rows, query)
    if query.as_csv:
        table = endpoint.name.replace("_", "-")  # several tables are of one topic
        headers = {"Content-Disposition": f'attachment; filename="{table}.csv"'}
        return bytes_answer(request, render_csv(found, rows.row_type, query.fields), _CSV, headers)
    shown = page_of(found, query)
    answer = answer_type(
        *envelope,
        total=shown.total,
        page=query.page,
        size=query.size,
        sentence=sentence,
        facets=dict(rows.facets),
        items=shown.rows,
        **(more or {}),
    )
    return json_answer(request, _with_fields(answer, query) if query.fields else answer)


def _with_fields(answer: Any, query: ListQuery) -> dict[str, Any]:
    """The same answer with only the wanted keys in each row."""
    body = cast(dict[str, Any], msgspec.to_builtins(answer))
    body["items"] = [{key: row[key] for key in query.fields} for row in body["items"]]
    return body
