"""The usage recorder inside a console: the console goes on when its recorder has ended."""

from __future__ import annotations

import asyncio
import logging
import time

import pytest
from tests.apps.fakes import FakeReadings
from tests.apps.usage_fakes import FakeUsageApi, recorder_process
from tests.usage.memory_ledger import MemoryLedger
from tests.usage.recording import NODES, a_node, utc_days
from tests.waiting import until

from fairlead.apps.usage_recorder import UsageRecorderProcess
from fairlead.errors import StoreDown
from fairlead.kinds.job_marks import AllJobMarks
from fairlead.model.usage.ledger import LedgerBounds
from fairlead.rules.usage.recording.recorder import UsageRecorder
from fairlead.run.servers.usage import recorded
from fairlead.wire.usage.states import state_body

STILL = 1.2
"""Seconds after which a recorder that does not write is gone."""


class AskedLedger(MemoryLedger):
    """Counts how often its bounds are read. `beats`: milliseconds by which each third reading finds
    the heartbeat advanced: a recorder that lives writes less often than it is looked at.
    """

    def __init__(self, beats: int = 0) -> None:
        super().__init__()
        self.asked, self.beats = 0, beats

    async def ledger_bounds(self) -> LedgerBounds:
        self.asked += 1
        self.heartbeat += self.beats if self.heartbeat and self.asked % 3 == 0 else 0
        return await super().ledger_bounds()


def process_of(
    api: FakeUsageApi, ledger: MemoryLedger, identity: str = "me"
) -> UsageRecorderProcess:
    """A new recorder."""
    api.recorder = UsageRecorder((), (), state_body, AllJobMarks(), utc_days)
    return recorder_process(api, ledger, FakeReadings(), identity)


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage() for each in caplog.records]


async def test_a_ledger_with_other_billing_days_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    ledger = MemoryLedger()
    await ledger.claim_ledger("earlier", 1, "Asia/Shanghai")
    await recorded(lambda: process_of(FakeUsageApi(), ledger), ledger)
    (record,) = [each for each in caplog.records if each.levelno == logging.ERROR]
    assert "Asia/Shanghai" in record.getMessage()


async def test_while_another_recorder_writes_this_one_stands_by_and_takes_over_when_it_is_gone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Their Leases are different, so only the ledger shows one to the other."""
    caplog.set_level(logging.INFO)
    ledger = AskedLedger(beats=1)
    api, other = FakeUsageApi(), FakeUsageApi()
    running = asyncio.ensure_future(recorded(lambda: process_of(api, ledger), ledger, STILL))
    another = None
    try:
        await until(lambda: ledger.heartbeat > 0)
        another = asyncio.ensure_future(process_of(other, ledger, "another").run())
        await until(lambda: ledger.holder == "another" and ledger.epoch == 2)
        api.put(NODES, a_node("n", time.time()))
        await until(lambda: any("claim 2 follows 1" in line for line in lines(caplog)))
        asked = ledger.asked
        await until(lambda: ledger.asked > asked + 12)  # twice as many as for one that is gone
        assert (ledger.epoch, ledger.nodes) == (2, {})
        another.cancel()
        ledger.beats = 0
        await until(lambda: ledger.epoch == 3 and len(ledger.nodes) == 1)
        assert ledger.holder == "me"
        assert any("another records no more" in line for line in lines(caplog))
    finally:
        for task in (running, another):
            if task is not None:
                task.cancel()


async def test_while_the_store_does_not_answer_the_other_recorder_may_live(
    caplog: pytest.LogCaptureFixture,
) -> None:
    api, ledger = FakeUsageApi(), AskedLedger()
    running = asyncio.ensure_future(recorded(lambda: process_of(api, ledger), ledger, STILL))
    try:
        await until(lambda: ledger.heartbeat > 0)
        await ledger.claim_ledger("another", round(time.time() * 1000))
        api.put(NODES, a_node("n", time.time()))
        await until(lambda: any("stands by" in line for line in lines(caplog)))
        ledger.down, asked = StoreDown("connection refused"), ledger.asked
        await until(lambda: ledger.asked > asked + 12)
        assert ledger.epoch == 2
        ledger.down = None
        await until(lambda: ledger.epoch == 3)
    finally:
        running.cancel()
