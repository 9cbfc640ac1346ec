"""Decides which of many pages are read at the same time: a number of slots, and a few more.

A few silent pages are read beside the slots.

A read keeps its slot for the time that such a read usually takes; then another page gets the slot,
and the slow read continues beside the slots. The number of those is limited too: when there are
more, the read that has been silent longest is ended. So pages that hang do not delay others, and
the number of open connections is bounded. This class has no clock and no tasks: callers report the
end of each read.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from itertools import islice
from typing import Generic, TypeVar

Page = TypeVar("Page", bound=Hashable)


class ReadSlots(Generic[Page]):
    """`at_once` slots, and `silent` reads beside them.

    `patience`: seconds for which a page keeps its slot.
    """

    def __init__(self, at_once: int, silent: int, patience: Callable[[Page], float]) -> None:
        self._at_once = at_once
        self._silent_at_once = silent
        self._patience = patience
        self._waiting: deque[Page] = deque()
        self._reading: dict[Page, float] = {}
        self._silent: dict[Page, None] = {}

    def __len__(self) -> int:
        """The number of reads that have begun and not ended."""
        return len(self._reading) + len(self._silent)

    def put(self, page: Page) -> None:
        """Adds a page that is due and is not being read."""
        self._waiting.append(page)

    def give_places(self, now: float) -> list[Page]:
        """The pages whose reads begin now."""
        for page in [each for each, until in self._reading.items() if until <= now]:
            del self._reading[page]
            self._silent[page] = None
        began = [
            self._waiting.popleft()
            for _ in range(min(len(self._waiting), self._at_once - len(self._reading)))
        ]
        self._reading |= {page: now + self._patience(page) for page in began}
        return began

    def too_many(self) -> list[Page]:
        """The pages whose reads must be ended, those that have been silent longest."""
        left = list(islice(self._silent, max(0, len(self._silent) - self._silent_at_once)))
        for page in left:
            del self._silent[page]
        return left

    def end(self, page: Page) -> None:
        """Notes the end of a read, for any reason; a second call does nothing."""
        self._reading.pop(page, None)
        self._silent.pop(page, None)

    def look_at(self) -> float | None:
        """The latest time at which a slot becomes free; None when no page waits for one."""
        return min(self._reading.values()) if self._waiting and self._reading else None
