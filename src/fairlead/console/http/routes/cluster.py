"""Answers about the whole cluster: overview, search, map, GPUs, holders, nodes."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Final

from msgspec import structs
from starlette.requests import Request
from starlette.responses import Response

from fairlead.console.boards.board_state import BoardState
from fairlead.console.boards.holders import GROUPINGS, holder_groups, holders_sentence
from fairlead.console.boards.rows import matching
from fairlead.console.boards.search import SHOWN, SHOWN_MAX, query_text
from fairlead.console.http.answers import Refused, json_answer, packed_answer
from fairlead.console.http.routes.console import Answering, Console, states_of
from fairlead.console.http.routes.rows import list_answer, long_list_answer
from fairlead.console.http.subjects import subject_of
from fairlead.console.pages.endpoints import Endpoint
from fairlead.console.pages.gpus import GpuList
from fairlead.console.pages.holders import HolderGroupList, HolderList
from fairlead.console.pages.list_query import parse_list_query, parse_whole
from fairlead.console.pages.nodes import NodeList
from fairlead.errors import UserError


async def overview(console: Console, request: Request, endpoint: Endpoint) -> Response:
    return json_answer(request, (await states_of(console, request).latest("overview")).overview)


async def mine(console: Console, request: Request, endpoint: Endpoint) -> Response:
    user, namespace = (request.query_params.get(name, "") for name in ("user", "namespace"))
    if user and namespace:
        raise UserError(
            f"`user` is `{user[:60]}` and `namespace` is `{namespace[:60]}`",
            "ask for one of them",
        )
    board_state = await states_of(console, request).latest("holders", "waiting", "offers", "places")
    own = _namespaces_of(console, request, user)
    # In a thread: what could start now is asked of a plan of the whole cluster.
    return await asyncio.to_thread(
        lambda: json_answer(request, board_state.my_work(user, namespace, own))
    )


def _namespaces_of(console: Console, request: Request, user: str) -> Collection[str]:
    """The namespaces of a user's groups. A researcher learns only the own ones."""
    subject = subject_of(request)
    if not user or user == subject.user:
        return subject.namespaces if user else ()
    found = console.desk.roster.users.get(user) if subject.is_admin and console.desk else None
    return found.status.namespaces if found is not None else ()


async def search(console: Console, request: Request, endpoint: Endpoint) -> Response:
    text = query_text(request.query_params.get("q", ""))
    most = parse_whole("size", request.query_params.get("size"), SHOWN, 1, SHOWN_MAX)
    board_state = await states_of(console, request).latest()
    # In a thread: there may be 50,000 pods to look through.
    return await asyncio.to_thread(lambda: json_answer(request, board_state.search(text, most)))


async def gpu_map(console: Console, request: Request, endpoint: Endpoint) -> Response:
    return packed_answer(request, await states_of(console, request).packed("gpu_map"))


async def gpus(console: Console, request: Request, endpoint: Endpoint) -> Response:
    board_state = await states_of(console, request).latest("gpus", "gpus_sentence")
    rows, sentence = board_state.gpus, board_state.gpus_sentence
    return await long_list_answer(request, endpoint, board_state, rows, sentence, GpuList, "gpus")


async def holders(console: Console, request: Request, endpoint: Endpoint) -> Response:
    board_state = await states_of(console, request).latest("holders", "holders_sentence")
    rows, sentence = board_state.holders, board_state.holders_sentence
    return await long_list_answer(
        request, endpoint, board_state, rows, sentence, HolderList, "gpus"
    )


async def grouped_holders(console: Console, request: Request, endpoint: Endpoint) -> Response:
    by = request.query_params.get("by") or GROUPINGS[0]
    if by not in GROUPINGS:
        raise UserError(f"`by` is `{by[:60]}`", f"use one of: {', '.join(GROUPINGS)}")
    board_state = await states_of(console, request).latest("holders")
    return await asyncio.to_thread(_grouped_answer, request, endpoint, board_state, by)


def _grouped_answer(
    request: Request, endpoint: Endpoint, board_state: BoardState, by: str
) -> Response:
    """Filters and `q` choose pods; what is sorted and cut into pages are the groups of those."""
    query = parse_list_query(
        [pair for pair in request.query_params.multi_items() if pair[0] != "by"], endpoint
    )
    chosen = matching(board_state.holders, structs.replace(query, sort=(), fields=()))
    groups = holder_groups(chosen, by)
    whole = structs.replace(query, q="", filters={})
    return list_answer(
        request,
        endpoint,
        board_state,
        groups,
        holders_sentence(chosen),
        HolderGroupList,
        "gpus",
        query=whole,
    )


async def nodes(console: Console, request: Request, endpoint: Endpoint) -> Response:
    board_state = await states_of(console, request).latest("nodes", "nodes_sentence")
    return list_answer(
        request,
        endpoint,
        board_state,
        board_state.nodes,
        board_state.nodes_sentence,
        NodeList,
        "nodes",
    )


async def node(console: Console, request: Request, endpoint: Endpoint) -> Response:
    name = request.path_params["name"]
    found = (await states_of(console, request).latest("job_by_pod", "idle")).node(name)
    if found is None:
        raise Refused(404, f"there is no node `{name[:253]}`", "look at the list of nodes")
    return json_answer(request, found)


ANSWERS: Final[dict[str, Answering]] = {
    "overview": overview,
    "mine": mine,
    "search": search,
    "gpu_map": gpu_map,
    "gpus": gpus,
    "holders": holders,
    "holder_groups": grouped_holders,
    "nodes": nodes,
    "node": node,
}
"""By the name of their endpoint."""
