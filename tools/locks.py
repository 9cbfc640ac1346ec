"""One lock file, held with flock until a block ends, so that two runs of one tool take turns.

The lock belongs to the open file, not to the file's existence: a killed run leaves nothing to clean
up.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from progress import say

LOOKS = 100
LOOK_SECONDS = 0.02


@contextmanager
def only_one(path: Path, what: str) -> Iterator[None]:
    """Hold the lock at `path`; if another process has it, print its pid and wait."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+", encoding="ascii") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting: process {_holder(lock)} is at work on {what}")
            fcntl.flock(lock, fcntl.LOCK_EX)
        lock.truncate(0)
        lock.write(f"{os.getpid()}\n")
        lock.flush()
        yield


def _holder(lock: TextIO) -> str:
    """Its pid. Between taking the lock and writing that there is a moment."""
    for _ in range(LOOKS):
        lock.seek(0)
        if pid := lock.read().strip():
            return pid
        time.sleep(LOOK_SECONDS)
    return "?"
