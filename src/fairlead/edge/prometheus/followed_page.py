"""One page that is read repeatedly: its last cards, its failures, and the time of its next read."""

from __future__ import annotations

import asyncio
import logging
import math
import random
from collections import Counter
from typing import Final

from msgspec import structs

from fairlead.edge.connection.backoff import Backoff
from fairlead.edge.prometheus.page_fetch import ExporterFailure
from fairlead.model.devices.plausible_values import BadLine
from fairlead.wire.metrics.one_reading import PageCards

FIRST_RETRY_SECONDS: Final = 0.5
LONGEST_RETRY_SECONDS: Final = 30.0
PATIENCE_SECONDS: Final = 1.0
SHORTEST_PATIENCE_SECONDS: Final = 0.25
"""`PATIENCE_SECONDS`, `SHORTEST_PATIENCE_SECONDS`: bounds for how long a page keeps a slot that
others need; within them, `PATIENCE_TIMES` its last reading time.
"""
PATIENCE_TIMES: Final = 5
_log = logging.getLogger("fairlead.exporter")


class FollowedPage:
    """Times are of the reader's clock, except `good_at`, which is of the cluster's clock.

    `is_gone`: it is no longer read; its last cards count until they are stale. `is_left`: its read
    was ended in favour of others. `took_seconds`: duration of its last good read.
    """

    def __init__(self, url: str, node: str, interval_seconds: float, rng: random.Random) -> None:
        self.url = url
        self.node = node
        self.cards = PageCards(url, ())
        self.bad: Counter[BadLine] = Counter()
        self.failure: ExporterFailure | None = None
        self.read_at: float | None = None
        self.good_at: float | None = None
        self.due_at = 0.0
        self.took_seconds: float | None = None
        self.is_left = False
        self.is_new = False
        self.is_gone = False
        self.reading: asyncio.Task[None] | None = None
        self._interval = interval_seconds
        self._rng = rng
        self._is_first = True
        self._backoff = Backoff(
            rng, min(interval_seconds, FIRST_RETRY_SECONDS), LONGEST_RETRY_SECONDS
        )

    @property
    def is_failing(self) -> bool:
        return self.failure is not None

    @property
    def is_sound(self) -> bool:
        """Whether its last read succeeded."""
        return self.read_at is not None and self.failure is None

    @property
    def patience_seconds(self) -> float:
        if self.took_seconds is None:
            return PATIENCE_SECONDS
        return min(
            PATIENCE_SECONDS, max(SHORTEST_PATIENCE_SECONDS, PATIENCE_TIMES * self.took_seconds)
        )

    def note_bad(self, bad: Counter[BadLine]) -> None:
        """Counts ignored lines by reason. The log has a warning once."""
        if bad and not self.bad:
            counts = ", ".join(f"{count} {reason}" for reason, count in sorted(bad.items()))
            _log.warning(
                "lines of page `%s` are ignored: %s; they are counted, and not named again",
                self.url,
                counts,
            )
        self.bad += bad

    def note(self, cards: PageCards, began: float, now: float) -> None:
        """Notes a read from `began` to `now`, by the reader's clock.

        The next read is due one interval after the last; if that time is over, at a later place of
        the interval, at least half an interval from now: no page is read without a pause.
        """
        self.took_seconds = now - began
        self.cards, self.read_at, self.is_new = (
            structs.replace(cards, is_kept=self.is_gone),
            now,
            True,
        )
        self.failure = None
        if self._is_first:
            self._is_first, self._backoff = (
                False,
                Backoff(self._rng, self._interval, max(self._interval, LONGEST_RETRY_SECONDS)),
            )
        self._backoff.reset()
        self.due_at += self._interval
        if self.due_at <= now:
            self.due_at += math.ceil((now - self.due_at) / self._interval + 0.5) * self._interval

    def note_failure(self, failure: ExporterFailure, now: float) -> None:
        self.failure = failure
        self.due_at = now + self._backoff.next_delay()

    def leave(self) -> None:
        """Stops reading the page, because its exporter is gone."""
        self.is_gone, self.failure = True, None
        self.cards = structs.replace(self.cards, is_kept=True)
        if self.reading is not None:
            self.reading.cancel()

    def leave_read(self) -> None:
        """Ends the read in favour of others."""
        self.is_left = self.reading is not None and self.reading.cancel()

    def drop_stale(self, now: float, after_seconds: float) -> bool:
        """Forgets values that are older; whether there were any."""
        if self.read_at is None or now - self.read_at <= after_seconds or not self.cards.readings:
            return False
        self.cards = PageCards(self.url, ())
        return True
