"""A thread for calls that may never return: a driver that hangs blocks this thread only."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread
from typing import Any, Final, TypeVar

Answer = TypeVar("Answer")
_END: Final = None


class CallThread:
    """Makes one call at a time. It is a daemon thread, so a process can end while a call hangs.

    `call` and `end` belong to one event loop.
    """

    def __init__(self, name: str, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._name = name
        self._monotonic = monotonic
        self._asked: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread: Thread | None = None
        self._since: float | None = None

    @property
    def busy_seconds(self) -> float:
        """Seconds since the present call began; 0.0 = there is none."""
        since = self._since
        return 0.0 if since is None else max(self._monotonic() - since, 1e-9)

    def call(self, function: Callable[[], Answer]) -> asyncio.Future[Answer]:
        """Begins the call; the future gets its result or exception.

        Raises RuntimeError during another call.
        """
        if self._since is not None:
            raise RuntimeError(f"{self._name} is in a call")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Answer] = loop.create_future()

        def make() -> None:
            try:
                answer: Any = function()
                failure: BaseException | None = None
            except BaseException as error:  # noqa: BLE001 - passed to the future of the call
                answer, failure = None, error
            with contextlib.suppress(RuntimeError):  # the loop has ended: no task waits any more
                loop.call_soon_threadsafe(self._settle, future, answer, failure)

        if self._thread is None:
            self._thread = Thread(target=self._work, name=self._name, daemon=True)
            self._thread.start()
        self._since = self._monotonic()
        self._asked.put(make)
        return future

    def end(self) -> None:
        """Ends the thread when it is free; a call that has begun is not waited for."""
        if self._thread is not None:
            self._asked.put(_END)
            self._thread = None

    def _work(self) -> None:
        while (make := self._asked.get()) is not _END:
            make()

    def _settle(
        self, future: asyncio.Future[Any], answer: Any, failure: BaseException | None
    ) -> None:
        self._since = None
        if future.done():
            return
        if failure is not None:
            future.set_exception(failure)
        else:
            future.set_result(answer)
