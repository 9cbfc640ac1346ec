"""Programs that a test runs to their end."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from os import PathLike

from tests.waiting import HANG_SECONDS


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
