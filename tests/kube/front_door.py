"""A port that leads to one server at a time, as a Service leads to a ready pod: new connections go
to the newest server, open ones stay where they are.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator

from tests.kube.addresses import free_port
from tests.waiting import HANG_SECONDS


class FrontDoor:
    """`port`: where clients connect. `backend`: the port that new connections go to."""

    def __init__(self, backend: int) -> None:
        self.port = free_port()
        self.backend = backend
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()
        assert self._ready.wait(HANG_SECONDS)

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(HANG_SECONDS)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(
            asyncio.start_server(self._lead, "127.0.0.1", self.port)
        )
        self._ready.set()
        self._loop.run_forever()
        server.close()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()

    async def _lead(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self.backend)
        except OSError:
            writer.transport.abort()
            return
        await asyncio.gather(_pump(reader, far_writer), _pump(far_reader, writer))


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while piece := await reader.read(1 << 16):
            writer.write(piece)
            await writer.drain()
    with contextlib.suppress(OSError):
        writer.close()


@contextlib.contextmanager
def open_door(backend: int) -> Iterator[FrontDoor]:
    door = FrontDoor(backend)
    door.start()
    try:
        yield door
    finally:
        door.stop()
