"""A WebSocket with a limit on the time to read what was sent.

uvicorn's protocol on wsproto pauses a client whose messages the app does not take. It closes a
connection gracefully, which never ends if the client does not read.
"""

from __future__ import annotations

from typing import Final

from uvicorn.protocols.websockets.wsproto_impl import WSProtocol

CLOSE_SECONDS: Final = 10.0


class WebSocketProtocol(WSProtocol):
    """One connection. It is aborted if it is still open `CLOSE_SECONDS` after the app's end."""

    async def run_asgi(self) -> None:
        try:
            await super().run_asgi()
        finally:
            self.loop.call_later(CLOSE_SECONDS, self.transport.abort)
