"""The queue of a leaf with `fairlead.io/queue: strict`: its units are tried one after the other,
and the first that is set aside for lack of room holds all later ones.

Only the first unit of the queue competes with units of other leaves.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush, heapreplace

from fairlead.model.quota.plan import Reason
from fairlead.rules.quota.units import Line, Unit

PlaceOf = Callable[[Unit], tuple[object, ...]]


class StrictQueue:
    """The lines of one leaf during one plan, without those that have a claim.

    `place_of`: the place of a unit; the smallest is tried first. A place may grow at any time;
    before it shrinks, the queue is emptied (`clear`) and filled again. `admitted`: the units that
    this plan admitted from the queue, in that order.
    """

    def __init__(self, place_of: PlaceOf) -> None:
        self.admitted: list[Unit] = []
        self._place_of = place_of
        self._heap: list[tuple[tuple[object, ...], int, Line]] = []
        self._count = 0
        self._led: tuple[Line, int] | None = None

    def put(self, line: Line) -> None:
        self._count += 1
        heappush(self._heap, (self._place_of(line.first), self._count, line))

    def first(self) -> Line | None:
        """The line whose first unit is tried next; None = no line is left."""
        while self._heap:
            place, count, line = self._heap[0]
            if line.reason is not None or line.next >= len(line.units):
                heappop(self._heap)
            elif (now := self._place_of(line.first)) != place:
                heapreplace(self._heap, (now, count, line))
            else:
                return line
        return None

    def lead(self) -> Line | None:
        """The first line, unless it was returned last time."""
        line = self.first()
        if line is None or self._led == (line, line.next):
            return None
        self._led = line, line.next
        return line

    def take(self) -> None:
        """Let the first line be returned again."""
        self._led = None

    def close(self) -> None:
        """Hold all lines that were not tried."""
        for _, _, line in self._heap:
            if line.reason is None and line.next < len(line.units):
                line.reason, line.clauses, line.ceiling = Reason.QUEUED_BEHIND, (), None
        self.clear()

    def clear(self) -> None:
        self._heap.clear()
        self._led = None

    def after(self, unit: Unit) -> list[Unit]:
        """The units admitted after this one. It and they are no longer among the admitted."""
        if unit not in self.admitted:
            return []
        at = self.admitted.index(unit)
        later = self.admitted[at + 1 :]
        del self.admitted[at:]
        return later
