"""Answers of servers that many pages request.

Each is requested once in a while, however many pages are open.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Answer = TypeVar("Answer")


class KeptAnswers(Generic[Key, Answer]):
    """Answers cached for `kept_seconds`; a request waits at most `patience` seconds.

    At most `most` keys are kept; the oldest is dropped first.

    `clock` is this machine's, however fast a simulated cluster's runs.
    """

    def __init__(
        self,
        kept_seconds: float,
        patience: float,
        most: int = 1,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.patience = patience
        self._kept_seconds = kept_seconds
        self._most = most
        self._clock = clock
        self._asked: dict[Key, tuple[float, asyncio.Task[Answer]]] = {}

    async def of(self, key: Key, ask: Callable[[], Coroutine[Any, Any, Answer]]) -> Answer | None:
        """What was answered lately, or is now; None when that takes too long.

        The question goes on: its answer is there for who asks next.
        """
        at, task = self._asked.get(key, (0.0, None))
        if task is None or (task.done() and self._clock() - at >= self._kept_seconds):
            self._asked.pop(key, None)
            while len(self._asked) >= self._most:
                self._asked.pop(next(iter(self._asked)))[1].cancel()
            task = asyncio.create_task(ask())
            self._asked[key] = (self._clock(), task)
        await asyncio.wait({task}, timeout=self.patience)
        return task.result() if task.done() and not task.cancelled() else None
