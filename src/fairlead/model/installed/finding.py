"""One answer of a doctor: what was checked, how it is, and what mends it."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class State(StrEnum):
    """UNKNOWN: it could not be read, so it is neither right nor wrong."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"
    UNKNOWN = "unknown"


class Finding(Struct, frozen=True):
    """`check`: its name, without blanks. `sentence`: with the actual value. `mend`: what to do,
    often a command; "" if nothing has to be done.
    """

    check: str
    state: State
    sentence: str
    mend: str = ""
