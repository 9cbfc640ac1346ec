"""What a run has no time to try whole is tried in turns: by the commit, so that a commit is judged by itself.

`FAIRLEAD_TURN=all` tries everything, a number that turn.
"""

from __future__ import annotations

import os
import subprocess
import zlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TypeVar

Case = TypeVar("Case")


def in_turn(cases: Sequence[Case], turns: int) -> list[Case]:
    """The cases at whose places it is this run's turn: every one of them in so many runs."""
    now = turn(turns)
    return [case for place, case in enumerate(cases) if now is None or place % turns == now]


def is_in_turn(name: str, turns: int) -> bool:
    """Whether it is the turn of what is called so; a name keeps its turn, whatever stands beside it."""
    now = turn(turns)
    return now is None or zlib.crc32(name.encode()) % turns == now


def turn(turns: int) -> int | None:
    """0 … turns - 1; None: all of them."""
    asked = os.environ.get("FAIRLEAD_TURN", "")
    if asked == "all":
        return None
    return (int(asked) if asked.isdecimal() else _number_of_commit()) % turns


@cache
def _number_of_commit() -> int:
    """How many commits there are up to this one; 0 where there is no history (an archive)."""
    counted = subprocess.run(
        ["git", "rev-list", "--count", "HEAD"], cwd=Path(__file__).parent, capture_output=True, text=True, timeout=30, check=False
    )
    return int(counted.stdout) if counted.returncode == 0 and counted.stdout.strip().isdecimal() else 0
