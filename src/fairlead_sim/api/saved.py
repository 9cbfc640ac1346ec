"""The API server of a kept world: no write is answered before it is on disk.

Reads are not held up. When the disk does not take it, the client gets a 500 in place of the answer:
the write may be there until the process ends, and is saved as soon as the disk works again.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fairlead.errors import OutsideError
from fairlead_sim.schema.status import ApiStatus, render_status

_READS = ("GET", "HEAD")


def saved_first(app: ASGIApp, save: Callable[[], None]) -> ASGIApp:
    """The same app, whose answers to writes leave when `save` has returned."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] in _READS:
            await app(scope, receive, send)
            return
        is_refused = False

        async def send_saved(message: Message) -> None:
            nonlocal is_refused
            if is_refused:
                return
            if message["type"] == "http.response.start":
                try:
                    save()
                except OutsideError as error:
                    is_refused = True
                    await _refusal(error)(scope, receive, send)
                    return
            await send(message)

        await app(scope, receive, send_saved)

    return answer


def _refusal(error: OutsideError) -> Response:
    status = ApiStatus(500, "InternalError", f"Internal error occurred: {error.log_line}")
    return Response(msgspec.json.encode(render_status(status)), 500, media_type="application/json")
