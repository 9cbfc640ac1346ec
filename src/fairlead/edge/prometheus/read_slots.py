"""Which of many pages are read at once: a slots of places, and a few beside it that wait for a
silent page.

A read keeps its place as long as one like it takes; then it gives it to the next and is waited for
beside the slots, where only so many are: of more, the one that is silent longest is left. So pages
that hang cost others nothing, and there is a bound on what is open. A slots has no clock and no
task: it is told when a read ended.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from itertools import islice
from typing import Generic, TypeVar

Page = TypeVar("Page", bound=Hashable)


class ReadSlots(Generic[Page]):
    """`at_once` places, and `silent` reads beside them. `patience`: how long a page keeps its
    place.
    """

    def __init__(self, at_once: int, silent: int, patience: Callable[[Page], float]) -> None:
        self._at_once = at_once
        self._silent_at_once = silent
        self._patience = patience
        self._waiting: deque[Page] = deque()
        self._reading: dict[Page, float] = {}
        self._silent: dict[Page, None] = {}

    def __len__(self) -> int:
        """Reads that have begun and not ended."""
        return len(self._reading) + len(self._silent)

    def put(self, page: Page) -> None:
        """It is due, and has no read under way."""
        self._waiting.append(page)

    def give_places(self, now: float) -> list[Page]:
        """Pages whose reads begin now."""
        for page in [each for each, until in self._reading.items() if until <= now]:
            del self._reading[page]
            self._silent[page] = None
        began = [self._waiting.popleft() for _ in range(min(len(self._waiting), self._at_once - len(self._reading)))]
        self._reading |= {page: now + self._patience(page) for page in began}
        return began

    def too_many(self) -> list[Page]:
        """Pages whose reads are to be left, those that are silent longest."""
        left = list(islice(self._silent, max(0, len(self._silent) - self._silent_at_once)))
        for page in left:
            del self._silent[page]
        return left

    def end(self, page: Page) -> None:
        """Its read ended, however; again is no harm."""
        self._reading.pop(page, None)
        self._silent.pop(page, None)

    def look_at(self) -> float | None:
        """When a place is free at the latest, where somebody waits for one."""
        return min(self._reading.values()) if self._waiting and self._reading else None
