"""Answers about the past: which moments can be shown, and one of them as a snapshot file."""

from __future__ import annotations

import asyncio
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from fairlead.console.http.answers import bytes_answer, json_answer
from fairlead.console.http.routes.console import Answering, Console, usage_ledger
from fairlead.console.pages.endpoints import Endpoint
from fairlead.console.pages.envelope import exact_timestamp
from fairlead.console.pages.usage.past import PastTimes
from fairlead.console.pages.usage.tables import UnrecordedTime
from fairlead.errors import UserError
from fairlead.rules.usage.past import MOMENT_HINT, shown_times
from fairlead.wire.files.snapshot_file import SavedSnapshot, render_snapshot


async def past(console: Console, request: Request, endpoint: Endpoint) -> Response:
    bounds = await usage_ledger(console).ledger_bounds()
    times = shown_times(bounds, console.now_ms())
    if times is None:
        return json_answer(request, PastTimes(None, None, [], bounds.zone))
    first, last = times
    gaps = [
        UnrecordedTime(_text(max(gap.started_at, first)), _text(gap.ended_at))
        for gap in bounds.gaps
        if gap.ended_at > first
    ]
    return json_answer(request, PastTimes(_text(first), _text(last), gaps, bounds.zone))


async def past_snapshot(console: Console, request: Request, endpoint: Endpoint) -> Response:
    at = request.query_params.get("at", "")
    if not at:
        raise UserError("`at` is missing", MOMENT_HINT)
    found = await console.past.cluster(usage_ledger(console), at)
    saved = SavedSnapshot(found.snapshot, found.snapshot.taken_at, console.world.name)
    data = await asyncio.to_thread(render_snapshot, saved)
    headers = {"Content-Disposition": 'attachment; filename="past.snapshot"'}
    return bytes_answer(request, data, endpoint.media_type, headers)


def _text(ms: int) -> str:
    return exact_timestamp(ms / 1000)


ANSWERS: Final[dict[str, Answering]] = {"past": past, "past_snapshot": past_snapshot}
"""By the name of their endpoint."""
