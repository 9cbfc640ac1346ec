"""Everything in one process and one event loop: several servers, the loops that feed them, one moment when all is up, one end.

What a newcomer gets wrong: nothing is announced before every server answers `/readyz` with 200, because whoever reads the ready file
asks at once. Stopping is cancelling: SIGTERM or Ctrl-C ends all of it within seconds.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final

from fairlead.apps.server import run_together

Loop = Coroutine[Any, Any, None]
ServerLoop = Callable[[asyncio.Event], Loop]
"""A server that is told which event to set once it accepts connections."""

_PROBE_PAUSE_SECONDS: Final = 0.05
_PROBE_SECONDS: Final = 2.0


async def run_all(
    servers: Sequence[ServerLoop],
    loops: Sequence[Loop],
    *,
    probed: Sequence[socket.socket],
    on_ready: Callable[[], None],
    on_hangup: Callable[[], None] | None = None,
) -> None:
    """Serve and run until SIGTERM, Ctrl-C or the first failure.

    `on_ready` is called once: when all servers accept connections and those on the `probed` sockets say that they are ready.
    `on_hangup`: what SIGHUP does; without it, it ends everything.
    """
    accepting = [asyncio.Event() for _ in servers]
    addresses = [sock.getsockname()[:2] for sock in probed]
    serving = [server(event) for server, event in zip(servers, accepting, strict=True)]
    await run_together(*serving, *loops, _announce(accepting, addresses, on_ready), on_hangup=on_hangup)


async def _announce(accepting: Sequence[asyncio.Event], addresses: Sequence[tuple[str, int]], on_ready: Callable[[], None]) -> None:
    for event in accepting:
        await event.wait()
    for host, port in addresses:
        while not await _says_ready(host, port):  # noqa: ASYNC110 - asked over HTTP, as a probe does
            await asyncio.sleep(_PROBE_PAUSE_SECONDS)
    on_ready()


async def _says_ready(host: str, port: int) -> bool:
    """Whether `GET /readyz` is answered with 200, asked from outside as a probe would."""
    try:
        async with asyncio.timeout(_PROBE_SECONDS):
            reader, writer = await asyncio.open_connection({"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host), port)
            try:
                writer.write(f"GET /readyz HTTP/1.1\r\nHost: localhost:{port}\r\nConnection: close\r\n\r\n".encode())
                return b" 200 " in await reader.readline()
            finally:
                writer.close()
    except (OSError, TimeoutError):
        return False
