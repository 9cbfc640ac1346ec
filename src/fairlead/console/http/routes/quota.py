"""Answers about quota: usage, waiting pods, the tree, its versions, what a change would do."""

from __future__ import annotations

import asyncio
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from fairlead.console.http.answers import json_answer
from fairlead.console.http.routes.console import Answering, Console, csrf_token, states_of
from fairlead.console.http.routes.rows import list_answer
from fairlead.console.http.writes import own_body
from fairlead.console.http.writing.quota_tree import tree_versions
from fairlead.console.pages.endpoints import Endpoint
from fairlead.console.pages.quota import QuotaUsage, QuotaWaitingList
from fairlead.console.pages.quota_tree import parse_what_if


async def quota_usage(console: Console, request: Request, endpoint: Endpoint) -> Response:
    board_state = await states_of(console, request).latest("quota", "quota_sentence")
    more = {"resources": list(board_state.quota_resources), "faults": board_state.quota_faults}
    return list_answer(
        request,
        endpoint,
        board_state,
        board_state.quota,
        board_state.quota_sentence,
        QuotaUsage,
        "quota",
        more,
    )


async def quota_waiting(console: Console, request: Request, endpoint: Endpoint) -> Response:
    board_state = await states_of(console, request).latest("waiting")
    # In a thread, because a plan of the whole cluster may have to be made first.
    return await asyncio.to_thread(
        lambda: list_answer(
            request,
            endpoint,
            board_state,
            board_state.waiting,
            board_state.waiting_sentence,
            QuotaWaitingList,
            "quota",
        )
    )


async def quota_tree(console: Console, request: Request, endpoint: Endpoint) -> Response:
    board_state = await states_of(console, request).latest()
    return await asyncio.to_thread(lambda: json_answer(request, board_state.quota_tree))


async def quota_tree_versions(console: Console, request: Request, endpoint: Endpoint) -> Response:
    return json_answer(request, await tree_versions(console.desk, console.sign_in_hint))


async def quota_what_if(console: Console, request: Request, endpoint: Endpoint) -> Response:
    asked = parse_what_if(await own_body(request, csrf_token(console, request)))
    board_state = await states_of(console, request).latest()
    effects = await asyncio.to_thread(board_state.what_if, asked)
    return json_answer(request, effects)


ANSWERS: Final[dict[str, Answering]] = {
    "quota_usage": quota_usage,
    "quota_waiting": quota_waiting,
    "quota_tree": quota_tree,
    "quota_tree_versions": quota_tree_versions,
    "quota_what_if": quota_what_if,
}
"""By the name of their endpoint."""
