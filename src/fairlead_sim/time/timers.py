"""A heap of callbacks in simulated time.

Ties run in the order in which they were set, so a history never depends on anything but the calls
that made it.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable

from fairlead_sim.time.clock import SimClock

Callback = Callable[[], None]


class Timer:
    """A callback that will run at `at` unless cancelled before."""

    __slots__ = ("at", "callback")

    def __init__(self, at: float, callback: Callback) -> None:
        self.at = at
        self.callback: Callback | None = callback

    def cancel(self) -> None:
        self.callback = None


class Timers:
    def __init__(self, clock: SimClock) -> None:
        self.clock = clock
        self._heap: list[tuple[float, int, Timer]] = []
        self._sequence = 0

    def at(self, when: float, callback: Callback) -> Timer:
        """Run `callback` at `when`; a time already past means now, after what is already due."""
        timer = Timer(max(when, self.clock.now()), callback)
        heapq.heappush(self._heap, (timer.at, self._sequence, timer))
        self._sequence += 1
        return timer

    def after(self, seconds: float, callback: Callback) -> Timer:
        return self.at(self.clock.now() + seconds, callback)

    def next_at(self) -> float | None:
        """When the next live timer is due; None if there is none."""
        while self._heap and self._heap[0][2].callback is None:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def step(self) -> bool:
        """Advance to the next timer and run it; False if nothing is left."""
        while self._heap:
            at, _, timer = heapq.heappop(self._heap)
            callback = timer.callback
            if callback is not None:
                self.clock.advance_to(at)
                callback()
                return True
        return False

    def run_until(self, when: float) -> int:
        """Run everything due up to and including `when`, then stay there.

        Returns how many callbacks ran.
        """
        count = 0
        while (due := self.next_at()) is not None and due <= when:
            self.step()
            count += 1
        self.clock.advance_to(max(when, self.clock.now()))
        return count
