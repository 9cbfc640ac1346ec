"""What the servers that a process depends on answered when they were asked, just now."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct


class ServerLook(Struct, frozen=True):
    """One server's answer, or why there was none (`failure`, `hint`).

    `seconds`: from the question to the whole answer. `ahead_seconds`: its clock against this machine's; None
    = it did not tell the time. `series`: GPU series that it has, of a Prometheus.
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

    `served`: versions of custom resources by `plural.group`, in the server's order; None = it did not say.
    """

    api: ServerLook
    prometheus: ServerLook | None = None
    served: Mapping[str, tuple[str, ...]] | None = None
