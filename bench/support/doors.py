"""Ports on loopback that lead to an API server and count the bytes that pass.

A component connects to its own door, so what it costs the network is known exactly: TLS passes
unchanged, and its bytes are counted with it.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Coroutine, Iterator
from typing import Any, TypeVar

Result = TypeVar("Result")
PIECE = 1 << 16


class Loop:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, Result], seconds: float = 60.0) -> Result:
        """The result of `work`; its exception is raised here."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(seconds)

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)


@contextlib.contextmanager
def running_loop() -> Iterator[Loop]:
    loop = Loop()
    loop.start()
    try:
        yield loop
    finally:
        loop.stop()


class Door:
    """`port`: where the component connects. `down`: bytes to the component; `up`: from it."""

    def __init__(self, loop: Loop, backend: int) -> None:
        self.down = self.up = 0
        self._backend = backend
        self._loop = loop
        self._server = loop.run(asyncio.start_server(self._lead, "127.0.0.1", 0))
        self.port: int = self._server.sockets[0].getsockname()[1]

    def close(self) -> None:
        """No new connection is let through; open ones end with the component."""
        self._loop.run(self._close())

    async def _close(self) -> None:
        self._server.close()

    async def _lead(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._backend)
        except OSError:
            writer.transport.abort()
            return
        await asyncio.gather(
            self._pump(reader, far_writer, is_down=False),
            self._pump(far_reader, writer, is_down=True),
        )

    async def _pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, is_down: bool
    ) -> None:
        with contextlib.suppress(OSError):
            while piece := await reader.read(PIECE):
                if is_down:
                    self.down += len(piece)
                else:
                    self.up += len(piece)
                writer.write(piece)
                await writer.drain()
        with contextlib.suppress(OSError):
            writer.close()
