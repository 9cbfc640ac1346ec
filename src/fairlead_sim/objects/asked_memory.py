"""The question of a starting program for memory of a shared card, and who answers it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from fairlead.model.devices.kubelet import RegionCard


class AskedMemory(NamedTuple):
    """A program's allocations on a shared card, in their order.

    `free_mib`: what the driver has left. `limit_mib`: the container's share.
    """

    node: str
    namespace: str
    pod: str
    pod_uid: str
    container: str
    uuid: str
    limit_mib: int
    free_mib: int
    sizes_mib: Sequence[int]


class GotMemory(NamedTuple):
    """`is_granted` False: the program ends at an allocation that fails.

    `counts`: those of the memory guard in the container, None without it. `warnings`: Events of the
    node's agent about the pod while the program runs, by reason and message.
    """

    is_granted: bool
    counts: RegionCard | None = None
    warnings: Sequence[tuple[str, str]] = ()


MemoryHook = Callable[[AskedMemory], GotMemory]
"""What a starting program gets of a shared card."""


def within_its_share(asked: AskedMemory) -> GotMemory:
    """For a world without an agent: the container's share is the limit."""
    return GotMemory(sum(asked.sizes_mib) <= min(asked.limit_mib, asked.free_mib))
