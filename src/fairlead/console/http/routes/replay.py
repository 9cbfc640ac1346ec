"""Replays of the past (docs/spec/usage.md#replay): begin one, look at it, cancel it."""

from __future__ import annotations

import asyncio
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from fairlead.console.boards.usage.replay import quota_replay
from fairlead.console.http.answers import json_answer
from fairlead.console.http.routes.console import Answering, Console, csrf_token, usage_ledger
from fairlead.console.http.subjects import subject_of
from fairlead.console.http.writes import own_body
from fairlead.console.pages.endpoints import Endpoint
from fairlead.console.pages.usage.replay import ReplayOrder, parse_replay_order
from fairlead.errors import UserError
from fairlead.model.quota.tree import QuotaTree
from fairlead.rules.usage.replay.changes import parse_model_change
from fairlead.wire.quota.elastic_quota import WireQuotaTree, parse_quota_tree


async def replay(console: Console, request: Request, endpoint: Endpoint) -> Response:
    usage_ledger(console)
    return json_answer(request, console.replays.state)


async def begin_replay(console: Console, request: Request, endpoint: Endpoint) -> Response:
    order = parse_replay_order(await own_body(request, csrf_token(console, request)))
    ledger, subject = usage_ledger(console), subject_of(request)
    nodes = [parse_model_change(text) for text in order.nodes]
    tree = await _tree(console, order)
    words, now = {"period": order.period}, console.now_ms()
    state = console.replays.begin(
        order,
        subject.user or subject.name,
        lambda progress: quota_replay(ledger, tree, words, now, nodes, progress),
    )
    return json_answer(request, state)


async def cancel_replay(console: Console, request: Request, endpoint: Endpoint) -> Response:
    await own_body(request, csrf_token(console, request), is_empty=True)
    usage_ledger(console)
    return json_answer(request, console.replays.cancel())


async def _tree(console: Console, order: ReplayOrder) -> QuotaTree | None:
    """Raises UserError for a text that is no tree, and for a node that the tree does not have."""
    if order.changes:
        board_state = await console.board_states.latest()
        return await asyncio.to_thread(board_state.changed_tree, order.changes)
    if not order.tree:
        return None
    try:
        return parse_quota_tree(msgspec.json.decode(order.tree, type=WireQuotaTree, strict=False))
    except (msgspec.DecodeError, RecursionError) as error:
        raise UserError(
            f"`tree` cannot be read: {error}", "give one ElasticQuotaTree in JSON"
        ) from error


ANSWERS: Final[dict[str, Answering]] = {
    "replay": replay,
    "begin_replay": begin_replay,
    "cancel_replay": cancel_replay,
}
"""By the name of their endpoint."""
