"""Waits for the Lease of a subject, before its work begins.

Specification: docs/spec/operations.md#lease.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from fairlead.apps.leader import Leader, LeaseTimes

OPERATION_LEASE_TIMES: Final = LeaseTimes(
    length=30, safe=25.0, renew=5.0, look=1.0, patience=5.0, fence=25.0
)
"""docs/spec/operations.md#lease; a process that finds a dead one's Lease waits 30 s."""
TAKE_OVER_SECONDS: Final = 40.0
"""How long a command waits for a Lease: a dead process's ends after 30 s."""
UNGIVEN_SECONDS: Final = 60.0
"""How long a Lease that no other process holds is asked for: after a lost answer its own name in it
counts as another process's for 25 s.
"""


async def is_taken(
    leader: Leader,
    times: LeaseTimes,
    *,
    patience: float,
    is_living_refused: bool,
    monotonic: Callable[[], float],
    sleep: Callable[[float], Awaitable[object]],
    say: Callable[[str], object] = lambda _line: None,
) -> bool:
    """Wait for a Lease that another process holds, `patience` seconds long, and for one that the
    API server does not give; then `leader` knows the holder, or the trouble.

    `is_living_refused`: a process that renews its Lease is not waited for. Times in seconds. `say`:
    receives one line about each process whose Lease is waited for.
    """
    began = monotonic()
    announced = ""
    while True:
        await leader.turn()
        if leader.is_held:
            return True
        waited = monotonic() - began
        if leader.holder not in ("", leader.identity):
            if waited >= patience or (is_living_refused and leader.is_renewed):
                return False
            if leader.holder != announced:
                announced = leader.holder
                end = f"if it does not live, its Lease ends after {times.length} s"
                say(f"waits for `{announced}`; {end}")
        elif waited >= max(patience, UNGIVEN_SECONDS):
            return False
        await sleep(times.look)
