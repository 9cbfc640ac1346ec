"""An event loop on which hours of waiting take no time, for what waits on nothing outside the
process.
"""

from __future__ import annotations

import asyncio
import selectors
from typing import Any

STEP_SECONDS = 1e-6
"""So much later than it wanted to a sleeper wakes, as with a real clock: who wakes a rounding early
would wait for ever.
"""


class JumpingLoop(asyncio.SelectorEventLoop):
    """When all wait, time jumps to who wakes first."""

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
