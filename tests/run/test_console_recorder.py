"""The usage recorder inside a console: the console goes on when its recorder has ended."""

from __future__ import annotations

import asyncio
import logging
import time

import pytest
from tests.apps.fakes import FakeReadings
from tests.apps.usage_fakes import FakeUsageApi, recorder_process
from tests.usage.memory_ledger import MemoryLedger
from tests.usage.recording import NODES, a_node
from tests.waiting import until

from fairlead.run.servers.usage import recorded


async def test_a_ledger_with_other_billing_days_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    ledger = MemoryLedger()
    await ledger.claim_ledger("earlier", 1, "Asia/Shanghai")
    await recorded(recorder_process(FakeUsageApi(), ledger, FakeReadings()))
    (record,) = [each for each in caplog.records if each.levelno == logging.ERROR]
    assert "Asia/Shanghai" in record.getMessage()


async def test_a_ledger_that_another_recorder_claimed_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    api, ledger = FakeUsageApi(), MemoryLedger()
    running = asyncio.ensure_future(recorded(recorder_process(api, ledger, FakeReadings())))
    await until(lambda: ledger.heartbeat > 0)
    await ledger.claim_ledger("another", round(time.time() * 1000))
    api.put(NODES, a_node("n", time.time()))
    await running
    assert any("claim 2 follows 1" in each.getMessage() for each in caplog.records)
