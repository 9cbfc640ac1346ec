"""What the memory guard does to the account of one GPU, an operation at a time.

Specification: docs/spec/gpu-sharing.md#accounting-of-the-guard.

An account is what the processes of one container share in their region: the bytes in use, and a
slot of each process with its part of them. An operation here is what happens while the lock of the
region is held; `steps` has the same operations store by store. The driver is called between
operations, never within one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

MOST_PROCESSES: Final = 1024
"""Slots of a region; a further process is granted nothing."""


@dataclass(frozen=True)
class Account:
    """All sizes are bytes. `held`: the slot of each process that has one, by process.

    `used` is the sum of the slots, and never above `limit`. `denied` counts refused requests,
    `peak` is the highest value of `used`.
    """

    limit: int
    used: int = 0
    peak: int = 0
    denied: int = 0
    held: Mapping[int, int] = field(default_factory=dict[int, int])


def enter(account: Account, process: int, dead: Collection[int] = ()) -> tuple[Account, bool]:
    """A process takes an empty slot; False where all slots are taken by living processes.

    A forked child enters like any other process: it has none of its parent's memory.
    """
    if process in account.held:
        account = reap(account, (process,))
    if len(account.held) >= MOST_PROCESSES:
        account = reap(account, dead)
    if len(account.held) >= MOST_PROCESSES:
        return account, False
    return replace(account, held={**account.held, process: 0}), True


def reserve(
    account: Account, process: int, size: int, dead: Collection[int] = ()
) -> tuple[Account, bool]:
    """Reserve `size` bytes before the driver is asked; False means out of memory.

    The slots of `dead` processes are emptied first where there is no room otherwise. A process
    without a slot is refused.

    >>> account, _ = enter(Account(limit=10), 1)
    >>> account, ok = reserve(account, 1, 7)
    >>> reserve(account, 1, 4)[1], reserve(account, 1, 3)[1]
    (False, True)
    """
    if size > account.limit - account.used:
        account = reap(account, dead)
    if size > account.limit - account.used or process not in account.held:
        return replace(account, denied=account.denied + 1), False
    return _charged(account, process, size), True


def release(account: Account, process: int, size: int) -> Account:
    """Give back bytes after the driver freed them, or did not allocate them.

    A process gives back at most what its slot holds.
    """
    size = min(size, account.held.get(process, 0))
    return _charged(account, process, -size) if size else account


def settle(
    account: Account, process: int, reserved: int, real: int, dead: Collection[int] = ()
) -> tuple[Account, bool]:
    """Correct a reservation to the real size.

    False: the real size is larger and there is no room for it. The reservation stays then, until
    the caller has freed the memory and rolled back.
    """
    if real <= reserved:
        return release(account, process, reserved - real), True
    return reserve(account, process, real - reserved, dead)


def reap(account: Account, dead: Collection[int]) -> Account:
    """The account without the slots of dead processes."""
    freed = sum(size for process, size in account.held.items() if process in dead)
    held = {process: size for process, size in account.held.items() if process not in dead}
    return replace(account, used=account.used - freed, held=held)


def recount(account: Account) -> Account:
    """The account after its lock was taken over from a dead owner: `used` is what the slots hold.

    The peak stays: it may be lower than the bytes in use by what the dead owner was adding.
    """
    used = sum(account.held.values())
    return replace(account, used=used, peak=max(account.peak, used))


def _charged(account: Account, process: int, size: int) -> Account:
    used = account.used + size
    held = {**account.held, process: account.held[process] + size}
    return replace(account, used=used, peak=max(account.peak, used), held=held)
