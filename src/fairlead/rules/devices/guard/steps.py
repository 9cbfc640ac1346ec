"""The memory guard's operations store by store, so that every interleaving can be tried.

Specification: docs/spec/gpu-sharing.md#accounting-of-the-guard.

A `Moment` is the shared words of a region and how far each process is. `following` returns all
moments that can come next: each living process does one store or one driver call, or dies. The C
code in `native/guard/region.c` makes the same stores in the same order; a test steps both.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from typing import Final, NamedTuple

FREE: Final = -1


class At(IntEnum):
    """What a process does next."""

    IDLE = 0
    LOCK = 1
    RECOUNT = 2
    CHECK = 3
    REAP_USED = 4
    REAP_SLOT = 5
    SLOT_UP = 6
    USED_UP = 7
    UNLOCK = 8
    DRIVER = 9
    USED_DOWN = 10
    SLOT_DOWN = 11
    DEAD = 12
    ABSENT = 13
    """A process that does not exist before another one forks."""


class Stand(NamedTuple):
    """How far one process is. `size`: bytes of the operation under way, `truth`: bytes that the
    driver gave it, `left`: operations that it may still begin.

    `gives_back`: the operation releases. `granted`: the reservation under way was granted.
    `fails`: the driver refuses this reservation. `victim`: whose slot is being emptied.
    """

    at: At = At.IDLE
    size: int = 0
    truth: int = 0
    left: int = 1
    gives_back: bool = False
    granted: bool = False
    fails: bool = False
    victim: int = FREE


class Moment(NamedTuple):
    """`owner`: which process holds the lock, or FREE. A dead process can be the owner."""

    limit: int
    stands: tuple[Stand, ...]
    slots: tuple[int, ...]
    used: int = 0
    denied: int = 0
    owner: int = FREE

    @property
    def truth(self) -> int:
        """What the driver gave to living processes."""
        return sum(stand.truth for stand in self.stands)


class Step(NamedTuple):
    """Who did what; `begin` names the operation that an idle process begins with `size`."""

    process: int
    begin: str = ""
    size: int = 0


def beginning(limit: int, processes: int, operations: int, absent: int = 0) -> Moment:
    """The first moment of an empty region; the last `absent` processes are there after a fork."""
    idle = (Stand(left=operations),) * (processes - absent)
    return Moment(limit, idle + (Stand(At.ABSENT, left=operations),) * absent, (0,) * processes)


def following(moment: Moment, sizes: tuple[int, ...]) -> Iterator[tuple[Step, Moment]]:
    """Every next moment, with the step that leads to it."""
    for process, stand in enumerate(moment.stands):
        if stand.at in (At.DEAD, At.ABSENT):
            continue
        yield Step(process, "die"), _moved(moment, process, at=At.DEAD, truth=0)
        if stand.at is At.IDLE:
            yield from _begun(moment, process, stand, sizes)
        elif stand.at is not At.LOCK or _is_free(moment):
            yield Step(process), _done(moment, process, stand)


def _begun(
    moment: Moment, process: int, stand: Stand, sizes: tuple[int, ...]
) -> Iterator[tuple[Step, Moment]]:
    if not stand.left:
        return
    left = stand.left - 1
    for size in sizes:
        for word, fails in (("reserve", False), ("fail", True)):
            begun = Stand(At.LOCK, size, stand.truth, left, fails=fails)
            yield Step(process, word, size), _at(moment, process, begun)
    if stand.truth:
        begun = Stand(At.LOCK, stand.truth, 0, left, gives_back=True)
        yield Step(process, "free", stand.truth), _at(moment, process, begun)
    for child, other in enumerate(moment.stands):
        if other.at is At.ABSENT:
            forked = _moved(_moved(moment, process, left=left), child, at=At.IDLE)
            yield Step(process, "fork", child), forked
            return


def _is_free(moment: Moment) -> bool:
    return moment.owner == FREE or moment.stands[moment.owner].at is At.DEAD


def _done(moment: Moment, process: int, stand: Stand) -> Moment:
    """The one store, or driver call, that a process does next."""
    match stand.at:
        case At.LOCK:
            then = At.CHECK if not stand.gives_back else At.USED_DOWN
            after = At.RECOUNT if moment.owner != FREE else then
            return _moved(moment, process, at=after)._replace(owner=process)
        case At.RECOUNT:
            then = At.CHECK if not stand.gives_back else At.USED_DOWN
            return _moved(moment, process, at=then)._replace(used=sum(moment.slots))
        case At.CHECK:
            return _checked(moment, process, stand)
        case At.REAP_USED:
            lowered = moment._replace(used=moment.used - moment.slots[stand.victim])
            return _moved(lowered, process, at=At.REAP_SLOT)
        case At.REAP_SLOT:
            emptied = _slot(moment, stand.victim, -moment.slots[stand.victim])
            return _moved(emptied, process, at=At.CHECK, victim=FREE)
        case At.SLOT_UP:
            return _moved(_slot(moment, process, stand.size), process, at=At.USED_UP)
        case At.USED_UP:
            raised = moment._replace(used=moment.used + stand.size)
            return _moved(raised, process, at=At.UNLOCK, granted=True)
        case At.UNLOCK:
            after = At.DRIVER if stand.granted else At.IDLE
            return _moved(moment, process, at=after)._replace(owner=FREE)
        case At.DRIVER:
            if stand.fails:
                return _moved(moment, process, at=At.LOCK, gives_back=True, granted=False)
            truth = stand.truth + stand.size
            return _moved(moment, process, at=At.IDLE, truth=truth, granted=False)
        case At.USED_DOWN:
            lowered = moment._replace(used=moment.used - stand.size)
            return _moved(lowered, process, at=At.SLOT_DOWN)
        case At.SLOT_DOWN:
            return _moved(_slot(moment, process, -stand.size), process, at=At.UNLOCK)
        case _:
            raise AssertionError(f"{stand.at.name} is no step")


def _checked(moment: Moment, process: int, stand: Stand) -> Moment:
    if stand.size <= moment.limit - moment.used:
        return _moved(moment, process, at=At.SLOT_UP)
    for victim, other in enumerate(moment.stands):
        if other.at is At.DEAD and moment.slots[victim]:
            return _moved(moment, process, at=At.REAP_USED, victim=victim)
    denied = moment._replace(denied=moment.denied + 1)
    return _moved(denied, process, at=At.UNLOCK, granted=False)


def _slot(moment: Moment, process: int, size: int) -> Moment:
    slots = list(moment.slots)
    slots[process] += size
    return moment._replace(slots=tuple(slots))


def _moved(moment: Moment, process: int, **changes: object) -> Moment:
    return _at(moment, process, moment.stands[process]._replace(**changes))  # type: ignore[arg-type]


def _at(moment: Moment, process: int, stand: Stand) -> Moment:
    stands = (*moment.stands[:process], stand, *moment.stands[process + 1 :])
    return moment._replace(stands=stands)
