"""A kubelet that reports which pod has which device."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.edge.kubelet.pod_resources import answering
from tests.waiting import HANG_SECONDS


@contextmanager
def kubelet(folder: Path, answer: bytes) -> Iterator[None]:
    """A kubelet that reports which pod has which device, at the socket that an exporter with
    `--kubelet-dir` asks.
    """
    socket = folder / "kubelet" / "pod-resources" / "kubelet.sock"
    socket.parent.mkdir(parents=True)
    is_there, is_over = threading.Event(), threading.Event()

    async def serve() -> None:
        async with answering(socket, answer):
            is_there.set()
            await asyncio.to_thread(is_over.wait)

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    try:
        assert is_there.wait(HANG_SECONDS)
        yield
    finally:
        is_over.set()
        thread.join()
