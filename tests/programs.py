"""Programs that a test runs to their end, or stops for a while."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path

from tests.waiting import HANG_SECONDS, wait_until


def run_program(
    argv: Sequence[str | PathLike[str]],
    *,
    check: bool = False,
    env: Mapping[str, str] | None = None,
    cwd: PathLike[str] | None = None,
    stdin: str | None = None,
    seconds: float = HANG_SECONDS,
) -> subprocess.CompletedProcess[str]:
    """The status of the ended program, and what it printed.

    Raises CalledProcessError for another status than 0 with `check`, and TimeoutExpired after
    `seconds`.
    """
    return subprocess.run(
        argv,
        input=stdin,
        env=env,
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=check,
    )


def freeze(*pids: int) -> None:
    """Sends SIGSTOP, and returns when every thread has stopped.

    A thread that waits for a processor stops when it gets one, and can still answer until then.
    """
    for each in pids:
        os.kill(each, signal.SIGSTOP)
    wait_until(
        f"every thread of {pids} has stopped",
        lambda: all(_states(each) <= {"T", "t", "Z"} for each in pids),
        pause_seconds=0.005,
    )


def _states(pid: int) -> set[str]:
    """Of its threads, as in /proc: "T" = stopped, "Z" = a zombie."""
    states = set()
    for task in Path("/proc", str(pid), "task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # a thread that has ended
            states.add((task / "stat").read_text().rpartition(")")[2].split()[0])
    return states
