"""The ledger in memory keeps what `ports.UsageLedger` promises; it is the oracle of the store's."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace
from tests.usage.memory_ledger import MemoryLedger

from fairlead.errors import LedgerTaken
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
    PodHour,
    PodInterval,
    PriceClass,
    StateEnd,
    StateKind,
    UsedBy,
)
from fairlead.ports import UsageLedger

POD = PodInterval(
    "p1", HOUR, UsedBy("ml"), "bert-0", "n1", PriceClass(gpu=8 * GPU), Amount(gpu=2 * GPU)
)
STATE = KeptState(StateKind.POD, "p1", HOUR, "ml", "bert-0", b"{}")


def test_an_open_record_counts_until_the_heartbeat_and_a_closed_one_until_its_end() -> None:
    async def run() -> None:
        ledger: UsageLedger = MemoryLedger()
        epoch = (await ledger.claim_ledger("a", HOUR)).epoch
        hour = PodHour("p1", HOUR, busy=GPU * HOUR, idle=GPU * HOUR)
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
