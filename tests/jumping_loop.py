"""An event loop on which waiting takes no real time, for code that waits for nothing outside the
process.
"""

from __future__ import annotations

import asyncio
import selectors
from typing import Any

STEP_SECONDS = 1e-6
"""A sleeper wakes this much later than requested, as with a real clock: one that woke a rounding
error too early would wait for ever.
"""


class JumpingLoop(asyncio.SelectorEventLoop):
    """When all tasks wait, time jumps to the next one that wakes."""

    def __init__(self) -> None:
        super().__init__(_Jumper(self))
        self.moment = 0.0

    def time(self) -> float:
        return self.moment


class _Jumper(selectors.SelectSelector):
    def __init__(self, loop: JumpingLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> Any:
        assert timeout is not None, "everybody waits for ever"
        if timeout > 0:
            self._loop.moment += timeout + STEP_SECONDS
        return super().select(0)
