"""Answers of the servers that a process depends on, from the last time that they were asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

SKEW_SECONDS: Final = 2.0
SKEW_SECONDS_MAX: Final = 60.0
"""Difference of two clocks from which a check warns, and from which it fails.

With such a difference ages, waits and tokens are wrong.
"""


class ServerLook(Struct, frozen=True):
    """One server's answer, or why there was none (`failure`, `hint`).

    `seconds`: from the request to the complete answer. `ahead_seconds`: how far its clock is ahead
    of this machine's; None = its answer has no time. `series`: for Prometheus, the number of GPU
    series.
    """

    address: str
    version: str = ""
    seconds: float | None = None
    ahead_seconds: float | None = None
    series: int | None = None
    failure: str = ""
    hint: str = ""


class DependencyLooks(Struct, frozen=True):
    """`prometheus` None: none is configured.

    `served`: versions of custom resources by `plural.group`, in the server's order; None = unknown.
    """

    api: ServerLook
    prometheus: ServerLook | None = None
    served: Mapping[str, tuple[str, ...]] | None = None
