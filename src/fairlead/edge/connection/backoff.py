"""Waiting times between attempts: doubling, with jitter, so that clients do not return at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random

LOW_SECONDS = 0.2
HIGH_SECONDS = 30.0


class Backoff:
    """0.2 s, 0.4 s, … 30 s, each shortened by up to half.

    A seeded `rng` makes the sequence repeatable.
    """

    def __init__(
        self, rng: random.Random | None = None, low: float = LOW_SECONDS, high: float = HIGH_SECONDS
    ) -> None:
        self._rng = rng or _new_rng()
        self._low = low
        self._high = high
        self._failures = 0

    @property
    def failures(self) -> int:
        """The number of failed attempts in a row."""
        return self._failures

    def next_delay(self, at_least: float | None = None) -> float:
        """Seconds to wait now.

        `at_least`: a server's Retry-After; waits are then spread after it.
        """
        delay: float = min(
            self._high, self._low * 2.0 ** min(self._failures, 20)
        ) * self._rng.uniform(0.5, 1.0)
        self._failures += 1
        return delay if at_least is None else max(delay, at_least * self._rng.uniform(1.0, 1.1))

    def reset(self) -> None:
        self._failures = 0


def _new_rng() -> random.Random:
    import random  # the command line imports this module, and nearly never waits

    return random.Random()
