"""The clock of this machine."""

from __future__ import annotations

import time


class WallClock:
    """`ports.Clock`: epoch seconds of this machine."""

    def now(self) -> float:
        return time.time()
