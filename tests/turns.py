"""Cases for which one run has no time are divided into parts. A run tries one part, chosen at
random.

`FAIRLEAD_TURN=N` chooses the part again that an earlier run printed; `FAIRLEAD_TURN=all` tries
everything. The commit has no influence: a rebase or a shallow clone does not change what is tested.

Whole modules are divided by the mark `turns(OF, PART)`, if the variable is set when pytest begins:
tools/run_tests.py sets it. A module that a person runs by its name is played in any case.
"""

from __future__ import annotations

import os
import random
import zlib
from collections.abc import Sequence
from typing import TypeVar

Case = TypeVar("Case")

VARIABLE = "FAIRLEAD_TURN"
TURNS = 1_000_000
"""A turn is a number below this; a case list divided by n is tried in part `turn % n`."""
MODULES_FROM = 1_000
"""Modules divided by n are tried in part `turn // MODULES_FROM % n`: the choice of modules does not
depend on that of their cases.
"""


def in_turn(cases: Sequence[Case], turns: int) -> list[Case]:
    """The cases of this run's part, of `turns` parts."""
    now = turn(turns)
    return [case for place, case in enumerate(cases) if now is None or place % turns == now]


def is_in_turn(name: str, turns: int) -> bool:
    """Whether the named case belongs to this run's part. It does
    not depend on the names beside it.
    """
    now = turn(turns)
    return now is None or zlib.crc32(name.encode()) % turns == now


def is_module_in_turn(turns: int, part: int) -> bool:
    """Whether modules of part `part`, 0 … turns - 1, belong to this run."""
    if not 0 <= part < turns:
        raise ValueError(f"part must be 0 to {turns - 1} of {turns} parts, not {part}")
    chosen = chosen_turn()
    return chosen == "all" or int(chosen) // MODULES_FROM % turns == part


def turn(turns: int) -> int | None:
    """0 … turns - 1; None: all of them. ValueError if the
    variable is neither a number nor `all`.
    """
    chosen = chosen_turn()
    return None if chosen == "all" else int(chosen) % turns


def chosen_turn() -> str:
    """The value of the variable. Where it is not set, it is chosen, and set for the processes that
    a test starts.
    """
    chosen = os.environ.get(VARIABLE) or str(random.SystemRandom().randrange(TURNS))
    if chosen != "all" and not chosen.isdecimal():
        raise ValueError(f"{VARIABLE} must be a number or all, not {chosen!r}")
    os.environ[VARIABLE] = chosen
    return chosen
