"""Long steps: one program with its output in a log, and a line every 20 seconds.

The log's end is printed when it fails.

Standard library only: the tools run before any environment exists.
"""

from __future__ import annotations

import math
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

REPORT_SECONDS = 20.0
KILL_SECONDS = 10.0
TAIL_LINES = 40
PYTEST_LINES = 200


class StepFailed(Exception):
    """A step failed; `what`: which and how, `hint`: what the user can do."""

    def __init__(self, what: str, hint: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.hint = hint


def say(text: str) -> None:
    """One line to stderr at once, so that it is in order with the output of child programs."""
    print(text, file=sys.stderr, flush=True)


def spoken_seconds(seconds: float) -> str:
    """A duration in words.

    >>> spoken_seconds(4.26), spoken_seconds(59.7), spoken_seconds(272)
    ('4.3 s', '60 s', '4 min 32 s')
    """
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{round(seconds) // 60} min {round(seconds) % 60} s"


def run_step(
    title: str,
    argv: Sequence[str],
    log: Path,
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    limit_seconds: float = 3600.0,
    silence_seconds: float = math.inf,
    progress: Callable[[Path], str] | None = None,
    niceness: int = 0,
) -> float:
    """Run `argv` to its end and return the seconds it took.

    Raises StepFailed when it fails, when it runs longer than `limit_seconds`, or when it prints
    nothing for `silence_seconds`. `progress` reads the log and returns what to add to the line that
    is printed every 20 seconds. `niceness`: how much lower than now its priority is, 0 to 19.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    with log.open("wb") as output:
        child = subprocess.Popen(
            [*(("nice", "-n", str(niceness)) if niceness else ()), *argv],
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        code = _wait(title, child, log, _Limits(started, limit_seconds, silence_seconds), progress)
    finally:
        stop_process(child)
    if isinstance(code, str):
        raise StepFailed(f"{title}: {code}\n{tail(log)}", f"the whole log is {log}")
    if code != 0:
        raise StepFailed(
            f"{title}: `{' '.join(argv[:3])}` ended with status {code}\n{tail(log)}",
            f"the whole log is {log}",
        )
    return time.monotonic() - started


@dataclass
class _Limits:
    """When a step is ended: how long it may run, and how long its log may stay as it is."""

    started: float
    limit_seconds: float
    silence_seconds: float
    size: int = -1
    grew: float = 0.0

    def left(self, log: Path) -> tuple[float, str]:
        """Seconds until the step is ended, and why it then is."""
        now = time.monotonic()
        if (size := log.stat().st_size) != self.size:
            self.size, self.grew = size, now
        whole = self.started + self.limit_seconds - now
        silent = self.grew + self.silence_seconds - now
        if silent < whole:
            return silent, f"no output for {spoken_seconds(self.silence_seconds)}"
        return whole, f"no end after {spoken_seconds(self.limit_seconds)}"


def _wait(
    title: str,
    child: subprocess.Popen[bytes],
    log: Path,
    limits: _Limits,
    progress: Callable[[Path], str] | None,
) -> int | str:
    """The exit status, or why the step must be ended."""
    while True:
        left, why = limits.left(log)
        if left <= 0:
            return why
        try:
            return child.wait(timeout=min(REPORT_SECONDS, left))
        except subprocess.TimeoutExpired:
            extra = progress(log) if progress else ""
            say(
                ("  … {}: {}{}").format(
                    title,
                    spoken_seconds(time.monotonic() - limits.started),
                    ", " + extra if extra else "",
                )
            )


def stop_process(child: subprocess.Popen[bytes]) -> None:
    """End a child that still runs: SIGTERM, then SIGKILL after ten seconds."""
    if child.poll() is not None:
        return
    child.send_signal(signal.SIGTERM)
    try:
        child.wait(timeout=KILL_SECONDS)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def tail(log: Path, lines: int = TAIL_LINES) -> str:
    """The part of a log about a failure, indented.

    Its last lines, or all (up to 200) that pytest prints from `= FAILURES =` on.
    """
    try:
        text = log.read_bytes()[-100_000:].decode("utf-8", "replace").splitlines()
    except OSError:
        return ""
    start = next(
        (
            place
            for place, line in enumerate(text)
            if re.match(
                (
                    r"=+ "
                    r"(FAILURES|ERRORS) =+$"
                ),
                line,
            )
        ),
        None,
    )
    kept = text[-lines:] if start is None else text[start:][-PYTEST_LINES:]
    return "\n".join("    " + line for line in kept)


def cache_home() -> Path:
    """Where built programs and downloaded toolchains live between runs.

    `~/.cache/fairlead`, or under XDG_CACHE_HOME.
    """
    root = os.environ.get("XDG_CACHE_HOME")
    return (Path(root) if root else Path.home() / ".cache") / "fairlead"
