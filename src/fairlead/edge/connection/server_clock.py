"""The time of an API server, as far as the `Date` of its answers shows it (`ports.Clock`).

Times of objects are the API server's. A process that compares them with its own clock decides
wrongly if that clock is wrong; the clock here is this machine's own while it may be right, and else
the nearest time that the answers leave possible.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from fairlead.edge.connection.timestamp import parse_http_date

_READ_AGAIN_SECONDS = 1.0


class ServerClock:
    """`wall`: epoch seconds of this machine; `monotonic`: seconds of a clock that nothing sets.

    >>> clock = ServerClock(wall=lambda: 7200.0, monotonic=lambda: 50.0)
    >>> clock.now()
    7200.0
    >>> clock.observe("Thu, 01 Jan 1970 01:00:00 GMT", sent_at=49.8)
    >>> clock.now()
    3601.2
    """

    def __init__(
        self,
        wall: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._wall = wall
        self._monotonic = monotonic
        self._read_at = -math.inf
        # bounds of the server's time minus `monotonic`
        self._least, self._most = -math.inf, math.inf

    def now(self) -> float:
        at = self._monotonic()
        return at + min(max(self._wall() - at, self._least), self._most)

    def observe(self, date: str | None, sent_at: float) -> None:
        """The `Date` of an answer that has just arrived to a request that was sent at `sent_at`.

        HTTP has whole seconds, cut off. Each answer narrows the bounds; one that contradicts them
        (the server's clock was set, another server answers) replaces them.
        """
        at = self._monotonic()
        if date is None or at - self._read_at < _READ_AGAIN_SECONDS:
            return
        written = parse_http_date(date)
        if written is None:
            return
        self._read_at = at
        least, most = written - at, written + 1.0 - sent_at
        narrowed = max(least, self._least), min(most, self._most)
        self._least, self._most = narrowed if narrowed[0] <= narrowed[1] else (least, most)
