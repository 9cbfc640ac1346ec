"""Whether a program gets the memory of a shared card that it asks for, by its node's provider.

Specification: docs/spec/gpu-sharing.md#isolation-providers.

The simulated cluster lives by this. Under the guard the account decides, as in its C code. The
other providers with a limit refuse in the driver, which shows no counts. Without a provider, or
with one that is not known, only the memory of the card is a limit.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from fairlead.model.devices.kubelet import RegionCard
from fairlead.rules.devices.guard.account import Account, enter, reap, release, reserve
from fairlead.rules.devices.provider import Provider

_MIB: Final = 1 << 20
_LIMITING: Final = frozenset((Provider.CGROUP, Provider.MIG, Provider.MPS, Provider.GUARD))
_PROCESS: Final = 1


class Allocation(NamedTuple):
    """`counts`: what the guard's region has afterwards; None without the guard."""

    is_granted: bool
    counts: RegionCard | None = None


def program_memory(
    provider: str, limit_mib: int, free_mib: int, sizes_mib: Iterable[int]
) -> Allocation:
    """A new container's only process asks for `sizes_mib`, one after another, and ends at the first
    that it does not get.

    `free_mib`: what the driver has left.

    >>> program_memory("guard", 4301, 12000, (121, 3072)).counts
    RegionCard(used=3347054592, peak=3347054592, denied=0, unknown_allocators=0)
    >>> program_memory("guard", 4301, 12000, (121, 6144)).counts.denied
    1
    >>> program_memory("none", 4301, 12000, (121, 6144))
    Allocation(is_granted=True, counts=None)
    """
    limit = limit_mib if provider in _LIMITING else free_mib
    account, is_granted = enter(Account(limit=limit * _MIB), _PROCESS)
    free = free_mib * _MIB
    for size in (mib * _MIB for mib in sizes_mib):
        account, is_granted = reserve(account, _PROCESS, size)
        if is_granted and account.used > free:  # the driver refuses it
            account, is_granted = release(account, _PROCESS, size), False
        if not is_granted:
            account = reap(account, (_PROCESS,))
            break
    if provider != Provider.GUARD:
        return Allocation(is_granted)
    return Allocation(is_granted, RegionCard(account.used, account.peak, account.denied))
