"""Which process holds the Lease, on a clock of the test's own, one `turn` at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from msgspec import structs
from tests.apps.leases import Clock, OneLease
from tests.jumping_loop import JumpingLoop
from tests.waiting import until

from fairlead.apps.leader import (
    BACKGROUND_LEASE_TIMES,
    BRIEF,
    LEASE_SECONDS,
    PATIENT_LEASE_TIMES,
    SAFE_SECONDS,
    Leader,
    LeaseTimes,
)
from fairlead.ports import LeaseRecord

TIMES = {
    "extender": BRIEF,
    "quota controller, cluster exporter": BACKGROUND_LEASE_TIMES,
    "usage recorder": PATIENT_LEASE_TIMES,
}
KILLED = {"extender": 6.0, "quota controller, cluster exporter": 6.0, "usage recorder": 16.0}
"""Seconds within which the next process takes the Lease of one that was killed."""


class Candidate:
    def __init__(
        self, lease: OneLease, name: str, clock: Callable[[], float], times: LeaseTimes = BRIEF
    ) -> None:
        self.taken = 0
        self.is_idle = True
        self.leader = Leader(lease, name, self._taken, lambda: self.is_idle, clock, times)

    def _taken(self) -> None:
        self.taken += 1

    def turn(self) -> bool:
        asyncio.run(self.leader.turn())
        return self.leader.is_held


def test_a_holder_gives_way_to_one_that_is_called_and_not_while_something_is_under_way() -> None:
    lease, clock = OneLease(), Clock()
    first, second = Candidate(lease, "first", clock), Candidate(lease, "second", clock)
    assert first.turn() and not second.turn()
    second.leader.called()
    assert not second.turn(), "it has asked"
    first.is_idle = False
    assert first.turn(), "a binding of its own may still come true"
    first.is_idle = True
    assert not first.turn() and second.turn()
    assert (first.taken, second.taken) == (1, 1)


def test_a_holder_that_is_called_itself_keeps_it() -> None:
    lease, clock = OneLease(), Clock()
    first, second = Candidate(lease, "first", clock), Candidate(lease, "second", clock)
    first.turn()
    for candidate in (first, second):
        candidate.leader.called()
    second.turn()
    assert first.turn() and not second.turn()


def test_no_process_holds_it_before_the_last_holder_has_ended() -> None:
    lease, clock = OneLease(), Clock()
    first, second = Candidate(lease, "first", clock), Candidate(lease, "second", clock)
    first.turn()
    second.turn()
    held_at = []
    for _ in range(60):
        clock.now += 0.1
        if first.leader.is_held:
            held_at.append(clock.now)
        if second.turn():
            break
    assert held_at[-1] <= 100 + SAFE_SECONDS < 100 + LEASE_SECONDS < clock.now


@pytest.mark.parametrize("times", TIMES.values(), ids=TIMES)
def test_a_start_under_the_holders_name_waits_until_the_holders_requests_have_ended(
    times: LeaseTimes,
) -> None:
    lease, clock = OneLease(), Clock()
    died, again = (Candidate(lease, "same", clock, times) for _ in range(2))
    died.turn()
    left_when_it_died = died.leader.left()
    assert not again.turn()
    clock.now += left_when_it_died - 0.01
    assert not again.turn(), "the API server may still decide what the other has sent"
    clock.now += 0.01
    assert again.turn() and again.taken == 1


@pytest.mark.parametrize("times", TIMES.values(), ids=TIMES)
def test_no_request_may_last_longer_than_the_lease(times: LeaseTimes) -> None:
    lease, clock = OneLease(), Clock()
    first = Candidate(lease, "first", clock, times)
    first.turn()
    while first.leader.is_held:
        assert 0 < first.leader.left() <= 100 + times.safe - clock.now
        clock.now += 0.1
    assert first.leader.left() == 0.0


def test_at_the_end_it_is_given_back_unless_something_may_still_come_true() -> None:
    lease, clock = OneLease(), Clock()
    first = Candidate(lease, "first", clock)
    first.turn()
    first.is_idle = False
    asyncio.run(first.leader.release())
    assert lease.record is not None and lease.record.holder == "first", "it runs out by itself"
    again = Candidate(lease, "other", clock)
    again.turn()
    clock.now += LEASE_SECONDS + 0.1
    assert again.turn()
    asyncio.run(again.leader.release())
    assert lease.record is not None and lease.record.holder == ""
    assert not again.leader.is_held and again.leader.left() == 0.0


def test_an_api_server_that_does_not_answer_lets_it_run_out() -> None:
    lease, clock = OneLease(), Clock()
    first = Candidate(lease, "first", clock)
    first.turn()
    lease.away = True
    clock.now += SAFE_SECONDS
    assert not first.turn() and first.leader.trouble
    lease.away = False
    assert first.turn() and first.taken == 1, (
        "no other process has had it: what is known is still known"
    )


class SlowLease(OneLease):
    """Writes are carried out, and answered only while `answers` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.answers = asyncio.Event()
        self.answers.set()

    async def put_lease(self, record: LeaseRecord) -> LeaseRecord | None:
        written = await super().put_lease(record)
        await self.answers.wait()
        return written


async def test_it_is_given_back_although_the_answer_to_the_last_renewal_is_missing() -> None:
    """The process ends while it renews, so it does not know the version of the Lease."""
    lease = SlowLease()
    leader = Leader(lease, "first")
    await leader.turn()
    lease.answers.clear()
    renewal = asyncio.ensure_future(leader.turn())
    await until(lambda: lease.record is not None and lease.record.version == "2")
    renewal.cancel()
    await asyncio.wait([renewal])
    lease.answers.set()
    await leader.release()
    assert lease.record is not None and lease.record.holder == ""


async def _ended_while_it_takes_the_lease() -> tuple[SlowLease, Leader]:
    """Its write is carried out, and it does not learn that."""
    lease = SlowLease()
    leader = Leader(lease, "first")
    lease.answers.clear()
    taking = asyncio.ensure_future(leader.turn())
    await until(lambda: lease.record is not None)
    taking.cancel()
    await asyncio.wait([taking])
    lease.answers.set()
    return lease, leader


async def test_it_is_given_back_although_the_answer_to_the_first_write_is_missing() -> None:
    """The process ends while it takes the Lease."""
    lease, leader = await _ended_while_it_takes_the_lease()
    assert lease.record is not None and lease.record.holder == "first"
    await leader.release()
    assert lease.record.holder == ""


async def test_a_write_without_an_answer_gives_back_no_lease_that_another_took() -> None:
    lease, leader = await _ended_while_it_takes_the_lease()
    assert lease.record is not None
    await lease.put_lease(structs.replace(lease.record, holder="second", renewed=""))
    await leader.release()
    assert lease.record.holder == "second"

    await leader.turn()
    await lease.put_lease(structs.replace(lease.record, holder="first", renewed=""))
    await leader.release()
    assert lease.record.holder == "first", "of another process of this name"


def test_a_process_that_waits_for_the_requests_of_its_namesake_gives_nothing_back() -> None:
    """At its end the Lease is still that of the process that died under this name."""
    lease, clock = OneLease(), Clock()
    died, again = Candidate(lease, "same", clock), Candidate(lease, "same", clock)
    died.turn()
    assert not again.turn()
    asyncio.run(again.leader.release())
    assert lease.record is not None and lease.record.holder == "same"


async def test_the_lease_of_another_is_not_given_back() -> None:
    lease = OneLease()
    leader = Leader(lease, "first")
    await leader.turn()
    assert lease.record is not None
    taken = structs.replace(lease.record, holder="second", renewed="")
    await lease.put_lease(taken)
    await leader.release()
    assert lease.record.holder == "second"


class BusyLease(OneLease):
    """Each request takes `seconds`, whatever it is."""

    seconds = 2.0

    async def get_lease(self) -> LeaseRecord | None:
        await asyncio.sleep(self.seconds)
        return await super().get_lease()

    async def put_lease(self, record: LeaseRecord) -> LeaseRecord | None:
        await asyncio.sleep(self.seconds)
        return await super().put_lease(record)


@pytest.mark.parametrize("seconds", [0.5, 1.2, 2.0, 2.4])
def test_a_recorder_keeps_its_lease_while_each_request_takes_two_seconds(seconds: float) -> None:
    """A busy machine: the standby asks as often, and never gets it."""
    loop = JumpingLoop()

    async def scene() -> tuple[bool, list[int]]:
        lease = BusyLease()
        lease.seconds = seconds
        one, other = (
            Leader(lease, name, monotonic=loop.time, times=PATIENT_LEASE_TIMES)
            for name in ("one", "other")
        )
        tasks = [asyncio.ensure_future(each.run()) for each in (one, other)]
        await asyncio.sleep(3 * PATIENT_LEASE_TIMES.length)
        terms, was_held = [one.term, other.term], True
        for _ in range(6000):
            was_held = was_held and one.is_held != other.is_held
            await asyncio.sleep(0.1)
        for each in tasks:
            each.cancel()
        await asyncio.wait(tasks)
        return was_held and [one.term, other.term] == terms, terms

    try:
        kept, terms = loop.run_until_complete(scene())
    finally:
        loop.close()
    assert kept and sorted(terms) == [0, 1]


@pytest.mark.parametrize("who", TIMES)
@pytest.mark.parametrize("phase", [0.0, 0.1, 0.39, 0.7, 0.99])
@pytest.mark.parametrize("gives_back", [True, False])
def test_a_standby_takes_over_within_a_second_of_an_end_and_soon_after_a_kill(
    who: str, phase: float, gives_back: bool
) -> None:
    """No process has called either of them. The holder ends at any phase of both rhythms."""
    loop, times = JumpingLoop(), TIMES[who]
    longest = 1.0 if gives_back else KILLED[who]

    async def scene() -> float:
        lease = OneLease()
        first, second = (
            Leader(lease, name, monotonic=loop.time, times=times) for name in ("first", "second")
        )
        await first.turn()
        holder = asyncio.ensure_future(first.run())
        await asyncio.sleep(phase)
        standby = asyncio.ensure_future(second.run())
        await asyncio.sleep(10 + phase)
        assert first.is_held and not second.is_held
        began = loop.time()
        holder.cancel()
        if gives_back:
            await first.release()
        while not second.is_held:  # noqa: ASYNC110 - of a clock that jumps
            await asyncio.sleep(0.01)
        took = loop.time() - began
        standby.cancel()
        await asyncio.wait([holder, standby])
        return took

    try:
        assert loop.run_until_complete(scene()) <= longest
    finally:
        loop.close()
