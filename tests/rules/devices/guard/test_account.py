"""The guard's account, an operation at a time: docs/spec/gpu-sharing.md#accounting-of-the-guard."""

from __future__ import annotations

import random

import pytest

from fairlead.rules.devices.guard.account import (
    MOST_PROCESSES,
    Account,
    enter,
    reap,
    recount,
    release,
    reserve,
    settle,
)

TOO_MUCH = (1 << 64) - 1


def account(limit: int = 10, **held: int) -> Account:
    """Processes `p1`, `p2`, … with what they hold."""
    slots = {int(name[1:]): size for name, size in held.items()}
    used = sum(slots.values())
    return Account(limit, used, used, 0, slots)


def test_the_last_byte_is_granted_and_no_more() -> None:
    full, granted = reserve(account(p1=4), 1, 6)
    assert (full.used, full.held, granted) == (10, {1: 10}, True)
    denied, granted = reserve(full, 1, 1)
    assert (denied.used, denied.denied, granted) == (10, 1, False)


def test_a_large_refused_request_does_not_refuse_a_small_one() -> None:
    denied, granted = reserve(account(p1=4), 1, TOO_MUCH)
    assert not granted
    assert reserve(denied, 1, 6)[1]


def test_slots_of_the_dead_make_room() -> None:
    after, granted = reserve(account(p1=7, p2=3), 2, 7, dead=(1,))
    assert (after.used, after.held, granted) == (10, {2: 10}, True)


def test_slots_of_the_dead_stay_while_there_is_room() -> None:
    assert reserve(account(p1=3, p2=3), 2, 1, dead=(1,))[0].held == {1: 3, 2: 4}


def test_a_process_gives_back_at_most_what_it_holds() -> None:
    after = release(account(p1=3, p2=4), 1, 5)
    assert (after.used, after.held) == (4, {1: 0, 2: 4})


def test_a_process_without_a_slot_is_refused() -> None:
    after, granted = reserve(account(p1=3), 2, 1)
    assert (granted, after.denied, after.used) == (False, 1, 3)


@pytest.mark.parametrize(
    ("real", "used", "fits"), [(2, 5, True), (4, 7, True), (7, 10, True), (8, 7, False)]
)
def test_a_reservation_is_settled_to_the_real_size(real: int, used: int, fits: bool) -> None:
    reserved, _ = reserve(account(p1=0, p2=3), 1, 4)
    after, settled = settle(reserved, 1, 4, real)
    assert (after.used, settled) == (used, fits)


def test_a_child_and_a_new_program_of_the_same_process_start_with_nothing() -> None:
    child, entered = enter(account(p1=4), 2)
    assert (child.held, entered) == ({1: 4, 2: 0}, True)
    assert enter(account(p1=4), 1)[0].held == {1: 0}


def test_one_process_too_many_is_refused_until_another_one_died() -> None:
    full = Account(10, held=dict.fromkeys(range(MOST_PROCESSES), 0))
    assert not enter(full, MOST_PROCESSES)[1]
    after, entered = enter(full, MOST_PROCESSES, dead=(5,))
    assert entered
    assert 5 not in after.held


def test_a_recount_believes_the_slots() -> None:
    assert recount(Account(10, 9, 9, 0, {1: 2, 2: 4})) == Account(10, 6, 9, 0, {1: 2, 2: 4})


def test_used_is_what_living_and_unreaped_processes_were_granted() -> None:
    chance = random.Random(7)
    now = Account(100)
    granted = dict.fromkeys(range(4), 0)
    for process in granted:
        now, _ = enter(now, process)
    for _ in range(4000):
        process, size = chance.randrange(4), chance.randrange(1, 60)
        match chance.randrange(3):
            case 0:
                now, ok = reserve(now, process, size)
                granted[process] += size if ok else 0
            case 1:
                size = min(size, granted[process])
                now, granted[process] = release(now, process, size), granted[process] - size
            case _:
                now, granted[process] = reap(now, (process,)), 0
                now, _ = enter(now, process)
        assert now.held == granted
        assert now.used == sum(granted.values()) <= now.limit
