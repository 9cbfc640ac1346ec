"""Answers about operations: the list, one of them, and the history of those that have ended."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from fairlead.console.boards.data.operation_rows import (
    ended_detail,
    ended_operation,
    operation_detail,
    operation_rows,
    operations_at_work,
    operations_sentence,
)
from fairlead.console.http.answers import JSON, Refused, json_answer
from fairlead.console.http.data.operation_desk import (
    OperationDesk,
    is_seen,
    unknown_operation,
)
from fairlead.console.http.routes.console import Answering, Console, from_api_server
from fairlead.console.http.routes.rows import rows_answer
from fairlead.console.http.subjects import subject_of
from fairlead.console.pages.data.operation_ids import is_id
from fairlead.console.pages.data.operations import EndedOperationPage, OperationList
from fairlead.console.pages.endpoints import Endpoint
from fairlead.console.pages.envelope import Warning, exact_timestamp
from fairlead.console.pages.list_query import SIZE_DEFAULT, SIZE_MAX, parse_list_query, parse_whole
from fairlead.errors import OutsideError, UserError
from fairlead.model.records.rows import OperationRow
from fairlead.ports import OperationHistory

_BEFORE: Final = re.compile(r"([0-9]{1,15})-([a-z0-9]{1,40})", re.ASCII)


async def operations(console: Console, request: Request, endpoint: Endpoint) -> Response:
    query = parse_list_query(request.query_params.multi_items(), endpoint)
    by = _name(request)
    found = [each for each in await operation_desk(console).list() if is_seen(each, by)]
    rows = operation_rows(found)
    sentence = operations_sentence([entry.row for entry in rows.entries])
    return rows_answer(request, endpoint, query, rows, sentence, OperationList, _envelope(console))


async def operation(console: Console, request: Request, endpoint: Endpoint) -> Response:
    """From its record, else from the history."""
    id = request.path_params["id"]
    desk = operation_desk(console)
    found = await desk.find(id, _name(request))
    if found is not None:
        detail = operation_detail(found, await desk.list(), _envelope(console))
        return json_answer(request, detail)
    history = _history(console)
    kept = await history.kept_operation(id) if history is not None and is_id(id) else None
    if kept is None:
        raise unknown_operation(id)
    return json_answer(request, ended_detail(kept, _envelope(console)))


async def operation_history(console: Console, request: Request, endpoint: Endpoint) -> Response:
    """Those without a record, which `operations` does not list."""
    history = _history(console)
    if history is None:
        raise Refused(
            404,
            "this console keeps no history of operations, because users do not sign in",
            console.sign_in_hint,
        )
    size = parse_whole("size", request.query_params.get("size"), SIZE_DEFAULT, 1, SIZE_MAX)
    before = _before(request.query_params.get("before") or "")
    recorded = {each.id for each in await operation_desk(console).list()}
    rows, has_more = await _rows_without(history, recorded, size, before)
    body = EndedOperationPage(
        generated_at=exact_timestamp(console.world.clock.now()),
        size=size,
        before=f"{rows[-1].created_at}-{rows[-1].id}" if has_more else "",
        items=[ended_operation(each) for each in rows],
    )
    return Response(msgspec.json.encode(body), 200, {"Cache-Control": "no-store"}, JSON)


async def _rows_without(
    history: OperationHistory,
    recorded: Collection[str],
    size: int,
    before: tuple[int, str] | None,
) -> tuple[list[OperationRow], bool]:
    """At most `size` rows of other operations than these, and whether there are more."""
    found: list[OperationRow] = []
    while True:
        rows = await history.operation_rows(size + 1, before)
        found += [each for each in rows if each.id not in recorded]
        if len(found) > size or len(rows) <= size:
            return found[:size], len(found) > size
        before = (rows[-1].created_at, rows[-1].id)


def _before(text: str) -> tuple[int, str] | None:
    """Raises UserError if it is no `before` of a page."""
    if not text:
        return None
    found = _BEFORE.fullmatch(text)
    if found is None:
        raise UserError(f"`before` is `{text[:60]}`", "give the `before` of the page before")
    return int(found[1]), found[2]


def _history(console: Console) -> OperationHistory | None:
    return console.desk.operation_history if console.desk is not None else None


def operation_desk(console: Console) -> OperationDesk:
    return from_api_server(console, console.operations, "operations are not kept")


async def operations_now(console: Console) -> Mapping[str, str]:
    """The ids of operations at work (`operations_at_work`); none where they cannot be read, which
    the page Operations reports.
    """
    if console.operations is None:
        return {}
    try:
        return operations_at_work(await console.operations.read())
    except OutsideError:
        return {}


def _name(request: Request) -> str:
    subject = subject_of(request)
    return subject.user or subject.name


def _envelope(console: Console) -> tuple[str, bool, str, list[Warning]]:
    versions = console.hints.versions
    versions.note_operations(operation_desk(console).last)
    version = versions.as_text()["operations"]
    return exact_timestamp(console.world.clock.now()), False, version, []


ANSWERS: Final[dict[str, Answering]] = {
    "operations": operations,
    "operation": operation,
    "operation_history": operation_history,
}
"""By the name of their endpoint."""
