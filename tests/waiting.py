"""Waits for conditions that nothing announces: checks again until the condition holds, and fails
after a time limit.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
from collections.abc import Callable
from typing import Final

HANG_SECONDS: Final = 240.0
"""Limit of whatever a test waits for: a condition, a program, a request, a thread. What has not
come by then never comes; a limit that is not reached costs nothing. It is below the 300 seconds of
silence after which a group of tests is ended, so that the case fails and not its group.

A minute is too short: `arena get` takes three seconds of one processor, and beside two busy loops
it got less than a twentieth of one while seven groups began.
"""


async def until(
    is_so: Callable[[], object], seconds: float = 30.0, pause_seconds: float = 0.02
) -> None:
    """Waits on the event loop; `is_so` may return an awaitable. Raises TimeoutError."""
    async with asyncio.timeout(max(seconds, HANG_SECONDS)):
        while not (await answer if inspect.isawaitable(answer := is_so()) else answer):  # noqa: ASYNC110 - nothing announces it
            await asyncio.sleep(pause_seconds)


def wait_until(
    what: str | Callable[[], str],
    is_so: Callable[[], object],
    seconds: float = 120.0,
    pause_seconds: float = 0.25,
) -> None:
    """Raises TimeoutError with `what`, which may be a function that is called only then."""
    seconds = max(seconds, HANG_SECONDS)
    limit = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > limit:
            raise TimeoutError(
                f"not so after {seconds:.0f} s: {what if isinstance(what, str) else what()}"
            )
        time.sleep(pause_seconds)


def check_prompt(seconds: float, act: Callable[[], float]) -> None:
    """Raises AssertionError if none of three acts takes less than `seconds`: a busy machine has
    quick moments, too. `act` returns the seconds that it took.
    """
    took: list[float] = []
    while not took or took[-1] >= seconds:
        assert len(took) < 3, f"it took {took} s, and never less than {seconds} s"
        took.append(act())


def repeat(ended: threading.Event, seconds: float, act: Callable[[], None]) -> None:
    """Acts once in this time, however long an act takes, until `ended` is set."""
    due = time.monotonic()
    while not ended.wait(max(0.0, due - time.monotonic())):
        act()
        due += seconds
