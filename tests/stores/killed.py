"""Processes that end at a chosen statement."""

from __future__ import annotations

import os
import signal
import traceback
from collections.abc import Callable
from pathlib import Path

WRITES = ("CREATE", "ALTER", "INSERT", "UPDATE", "DELETE")
"""A process that ends between two questions leaves the same store as before the first."""


def started(work: Callable[[], object], done: Path) -> int:
    """The id of a process of its own that does the work, writes the file and kills itself."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
            done.touch()
        finally:
            if not done.exists():
                traceback.print_exc()
            end()
    return pid


def end() -> None:
    """As the kernel ends a process: nothing runs any more, not what pytest does at its end."""
    os.kill(os.getpid(), signal.SIGKILL)
