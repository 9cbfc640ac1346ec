"""The ledger in memory keeps what `ports.UsageLedger` promises; it is the oracle of the store's."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace
from tests.usage.memory_ledger import MemoryLedger

from fairlead.errors import LedgerTaken, UserError
from fairlead.model.usage.ledger import (
    GPU,
    HOUR,
    OPEN,
    Amount,
    ClosedBy,
    End,
    Gap,
    KeptState,
    LedgerBatch,
    LedgerBounds,
    LedgerJob,
    PodHour,
    PodInterval,
    PriceClass,
    StateEnd,
    StateKind,
    UsedBy,
)
from fairlead.model.usage.sums import UsageIntegral, UsageSum
from fairlead.ports import UsageLedger

POD = PodInterval(
    "p1", HOUR, UsedBy("ml"), "bert-0", "n1", PriceClass(gpu=8 * GPU), Amount(gpu=2 * GPU)
)
STATE = KeptState(StateKind.POD, "p1", HOUR, "ml", "bert-0", b"{}")


def test_an_open_record_counts_until_the_heartbeat_and_a_closed_one_until_its_end() -> None:
    async def run() -> None:
        ledger: UsageLedger = MemoryLedger()
        epoch = (await ledger.claim_ledger("a", HOUR)).epoch
        hour = PodHour("p1", HOUR, HOUR, busy=GPU * HOUR, idle=GPU * HOUR)
        await ledger.write_ledger(epoch, LedgerBatch(3 * HOUR, pods=(POD,), pod_hours=(hour,)))
        (row,) = await ledger.usage_sums(0, 24 * HOUR)
        assert (row.integral.gpu, row.integral.busy, row.pods) == (4 * GPU * HOUR, GPU * HOUR, 1)
        end = End(("p1", HOUR), 2 * HOUR, ClosedBy.DELETED)
        for _ in range(2):  # a batch may be repeated
            await ledger.write_ledger(epoch, LedgerBatch(4 * HOUR, pod_ends=(end,)))
        (row,) = await ledger.usage_sums(0, 24 * HOUR)
        assert row.integral.gpu == 2 * GPU * HOUR
        await ledger.fold_day(epoch, 0, 24 * HOUR)
        assert await ledger.usage_days(0, 1) == (replace(row, day=0),)
        assert await ledger.usage_days(0, 1, ("other",)) == ()

    asyncio.run(run())


def test_a_state_is_valid_from_its_start_included_to_its_end_excluded() -> None:
    async def run() -> None:
        ledger = MemoryLedger()
        epoch = (await ledger.claim_ledger("a", 0)).epoch
        await ledger.write_ledger(epoch, LedgerBatch(HOUR, states=(STATE,)))
        end = StateEnd(StateKind.POD, ("p1", HOUR), 2 * HOUR)
        await ledger.write_ledger(epoch, LedgerBatch(2 * HOUR, state_ends=(end,)))
        found = [
            len(await ledger.states_at(at, (StateKind.POD,)))
            for at in (HOUR - 1, HOUR, 2 * HOUR - 1, 2 * HOUR)
        ]
        assert found == [0, 1, 1, 0]
        assert await ledger.states_at(HOUR, (StateKind.POD,), ("other",)) == ()

    asyncio.run(run())


def test_the_newest_claim_alone_writes_and_the_time_between_is_a_gap() -> None:
    async def run() -> None:
        ledger = MemoryLedger()
        first = await ledger.claim_ledger("a", HOUR)
        await ledger.write_ledger(first.epoch, LedgerBatch(HOUR, pods=(POD,)))
        second = await ledger.claim_ledger("b", 2 * HOUR)
        assert [each.ended_at for each in second.pods] == [OPEN]
        with pytest.raises(LedgerTaken):
            await ledger.write_ledger(first.epoch, LedgerBatch(3 * HOUR))
        assert (await ledger.ledger_bounds()).gaps == (Gap(HOUR, 2 * HOUR),)

    asyncio.run(run())


SMALL = PodInterval("p", 1000, UsedBy("ns", "bob"), "pod", "node", PriceClass(), Amount(2, 3, 5, 7))


async def test_sums_are_cut_at_the_time_and_open_intervals_at_the_heartbeat() -> None:
    ledger = MemoryLedger()
    claim = await ledger.claim_ledger("one", 500)
    hours = (PodHour("p", 1000, 0, 4, 5, 6), PodHour("other", 1000, 0, 1))
    await ledger.write_ledger(claim.epoch, LedgerBatch(3000, (SMALL,), pod_hours=hours))
    [found] = await ledger.usage_sums(0, OPEN >> 30)
    integral = UsageIntegral(4000, 6000, 10000, 14000, 4, 5, 6)
    assert found == UsageSum(0, SMALL.by, LedgerJob(), PriceClass(), integral, 1)
    [found] = await ledger.usage_sums(1500, 2500)
    assert found.integral == UsageIntegral(2000, 3000, 5000, 7000)
    assert await ledger.usage_sums(0, 1000, ["ns"]) == (
        UsageSum(0, SMALL.by, LedgerJob(), PriceClass(), UsageIntegral(0, 0, 0, 0, 4, 5, 6)),
    )
    assert await ledger.usage_sums(0, 2500, ["other"]) == ()


async def test_an_end_counts_once_and_never_before_the_start() -> None:
    ledger = MemoryLedger()
    claim = await ledger.claim_ledger("one", 500)
    ends = [End(("p", 1000), at, ClosedBy.FINISHED) for at in (10, 2000)]
    await ledger.write_ledger(claim.epoch, LedgerBatch(3000, (SMALL,), pod_ends=tuple(ends)))
    assert ledger.pods["p", 1000].ended_at == 1000
    assert await ledger.pod_intervals(0, OPEN) == ()


async def test_an_older_claim_is_refused_and_the_time_between_is_a_gap() -> None:
    ledger = MemoryLedger()
    old = await ledger.claim_ledger("one", 500)
    await ledger.write_ledger(old.epoch, LedgerBatch(HOUR, (SMALL,)))
    claim = await ledger.claim_ledger("two", HOUR + 7)
    assert (claim.epoch, claim.heartbeat, claim.pods) == (2, HOUR, (SMALL,))
    with pytest.raises(LedgerTaken):
        await ledger.write_ledger(old.epoch, LedgerBatch(HOUR + 9))
    gaps = (Gap(HOUR, HOUR + 7),)
    assert await ledger.ledger_bounds() == LedgerBounds(HOUR, HOUR, gaps, 0, 2, holder="two")
    with pytest.raises(UserError):
        await ledger.claim_ledger("three", HOUR + 8, "Asia/Shanghai")
