"""A limit for requests per second: a bucket of tokens that fills at a fixed rate; waiters queue."""

from __future__ import annotations

import asyncio
import time


class RateLimit:
    """`per_second` on average, `burst` at once. Waiters are served in order of arrival."""

    def __init__(self, per_second: float, burst: int) -> None:
        self._per_second = per_second
        self._burst = burst
        self._ready_at = time.monotonic() - burst / per_second

    async def wait(self) -> None:
        now = time.monotonic()
        self._ready_at = (
            max(self._ready_at, now - self._burst / self._per_second) + 1 / self._per_second
        )
        if self._ready_at > now:
            await asyncio.sleep(self._ready_at - now)
