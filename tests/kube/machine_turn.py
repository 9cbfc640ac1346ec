"""Lets one test run at a time use a thing of which a machine has only one; other runs wait for
their turn.

The lock belongs to the open file, so a killed run leaves no lock behind.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from tests.waiting import wait_until

_TURN_SECONDS = 900.0


@contextmanager
def only_run(what: str, lock_path: Path) -> Iterator[None]:
    """Wait until no other test run uses `what`, and reserve it for the block."""
    with lock_path.open("a") as lock:
        wait_until(
            f"no other {what} on this machine ({lock_path})",
            lambda: _is_taken(lock),
            _TURN_SECONDS,
        )
        yield


def _is_taken(lock: TextIO) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
