"""Everything in one process and one event loop: several servers, the loops that feed them, one moment when all is up, one end.

What a newcomer gets wrong: nothing is announced before every server answers *and* the followed cluster has been read once, because
whoever reads the ready file asks at once. Stopping is cancelling: SIGTERM or Ctrl-C ends all of it within seconds.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine, Sequence
from ssl import SSLContext
from typing import Any

from msgspec import Struct
from starlette.types import ASGIApp

from fairlead.apps.server import run_together, serve

_READY_POLL_SECONDS = 0.02


class Server(Struct, frozen=True):
    """One ASGI app on one bound socket; `ssl` for TLS."""

    app: ASGIApp
    sock: socket.socket
    ssl: SSLContext | None = None


async def run_all(
    servers: Sequence[Server],
    loops: Sequence[Coroutine[Any, Any, None]],
    *,
    is_ready: Callable[[], bool],
    on_ready: Callable[[], None],
) -> None:
    """Serve and run until SIGTERM, Ctrl-C or the first failure. `on_ready` is called once, when all servers accept and `is_ready`."""
    accepting = [asyncio.Event() for _ in servers]
    serving = [serve(server.app, sock=server.sock, ssl=server.ssl, ready=event) for server, event in zip(servers, accepting, strict=True)]
    await run_together(*serving, *loops, _announce(accepting, is_ready, on_ready))


async def _announce(accepting: Sequence[asyncio.Event], is_ready: Callable[[], bool], on_ready: Callable[[], None]) -> None:
    for event in accepting:
        await event.wait()
    while not is_ready():
        await asyncio.sleep(_READY_POLL_SECONDS)
    on_ready()
