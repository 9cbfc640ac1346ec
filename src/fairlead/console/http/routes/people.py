"""Answers about people: users, groups, credentials, the audit."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from fairlead.console.boards.rows import RowSet
from fairlead.console.http.answers import JSON, Refused, json_answer
from fairlead.console.http.routes.console import Answering, Console
from fairlead.console.http.routes.rows import rows_answer
from fairlead.console.http.writing.audit import AuditAnswers
from fairlead.console.http.writing.people_rows import (
    group_row,
    group_rows,
    groups_sentence,
    user_row,
    user_rows,
    users_sentence,
)
from fairlead.console.pages.endpoints import Endpoint
from fairlead.console.pages.envelope import Sentence, Warning, exact_timestamp
from fairlead.console.pages.list_query import parse_list_query
from fairlead.console.pages.writing.people import GroupList, UserList


async def users(console: Console, request: Request, endpoint: Endpoint) -> Response:
    desk = console.roster_desk
    rows, sentence = user_rows(desk.roster.users), users_sentence(desk.roster.users)
    return _people_answer(console, request, endpoint, rows, sentence, UserList)


async def groups(console: Console, request: Request, endpoint: Endpoint) -> Response:
    desk = console.roster_desk
    rows = group_rows(desk.roster.groups, desk.roster.users)
    sentence = groups_sentence(desk.roster.groups)
    return _people_answer(console, request, endpoint, rows, sentence, GroupList)


def _people_answer(
    console: Console,
    request: Request,
    endpoint: Endpoint,
    rows: RowSet[Any],
    sentence: Sentence,
    answer_type: Any,
) -> Response:
    query = parse_list_query(request.query_params.multi_items(), endpoint)
    version = console.people_versions()[endpoint.name]
    envelope = (exact_timestamp(console.world.clock.now()), False, version, list[Warning]())
    return rows_answer(request, endpoint, query, rows, sentence, answer_type, envelope)


async def user(console: Console, request: Request, endpoint: Endpoint) -> Response:
    name = request.path_params["id"]
    found = console.roster_desk.roster.users.get(name)
    if found is None:
        raise Refused(404, f"there is no user `{name[:253]}`", "look at the list of users")
    return json_answer(request, user_row(found))


async def group(console: Console, request: Request, endpoint: Endpoint) -> Response:
    name, roster = request.path_params["name"], console.roster_desk.roster
    found = roster.groups.get(name)
    if found is None:
        raise Refused(404, f"there is no group `{name[:253]}`", "look at the list of groups")
    return json_answer(request, group_row(found, roster.users.values()))


async def tokens(console: Console, request: Request, endpoint: Endpoint) -> Response:
    console.writes.check()
    found = await console.credential_plans.listed(request)
    return Response(msgspec.json.encode(found), 200, {"Cache-Control": "no-store"}, JSON)


async def audit(console: Console, request: Request, endpoint: Endpoint) -> Response:
    trail = console.desk.audit if console.desk is not None else None
    return await AuditAnswers(trail, console.now_ms, console.sign_in_hint).answer(request)


ANSWERS: Final[dict[str, Answering]] = {
    "users": users,
    "user": user,
    "groups": groups,
    "group": group,
    "user_tokens": tokens,
    "my_tokens": tokens,
    "audit": audit,
}
"""By the name of their endpoint."""
