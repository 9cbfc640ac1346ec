"""The usage recorder's process: what is stored and when, and what ends it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.apps.fakes import FakeReadings
from tests.apps.plain_requests import ask
from tests.apps.usage_fakes import FakeUsageApi, recorder_process
from tests.usage.memory_ledger import MemoryLedger
from tests.usage.recording import NODES, PODS, a_node, a_pod
from tests.waiting import until

from fairlead.apps.server import bind_socket
from fairlead.apps.usage_recorder import PACE, UsageRecorderProcess
from fairlead.errors import LedgerTaken, StoreDown, UserError
from fairlead.ports import LeaseRecord


@contextmanager
def running(process: UsageRecorderProcess) -> Iterator[asyncio.Task[None]]:
    task = asyncio.ensure_future(process.run())
    try:
        yield task
    finally:
        task.cancel()


async def test_a_bound_pod_is_stored_within_two_seconds() -> None:
    api, ledger = FakeUsageApi(), MemoryLedger()
    api.put(NODES, a_node("n", time.time() - 100))
    process = recorder_process(api, ledger, FakeReadings())
    with running(process):
        await until(lambda: ledger.heartbeat > 0)
        api.put(PODS, a_pod("a", "n", time.time()))
        await until(lambda: len(ledger.pods) == 1)
        assert process.unready == ""
    assert PACE.coalesce_seconds + PACE.full_look_seconds < 2


async def test_a_recorder_whose_ledger_was_claimed_by_another_ends() -> None:
    api, ledger = FakeUsageApi(), MemoryLedger()
    process = recorder_process(api, ledger, FakeReadings())
    with running(process) as task:
        await until(lambda: ledger.heartbeat > 0)
        await ledger.claim_ledger("another", round(time.time() * 1000))
        api.put(NODES, a_node("n", time.time()))
        with pytest.raises(LedgerTaken, match="claim 2 follows 1"):
            await task
    assert ledger.nodes == {}


async def test_a_ledger_with_other_billing_days_ends_the_process() -> None:
    api, ledger = FakeUsageApi(), MemoryLedger()
    await ledger.claim_ledger("earlier", 1, "Asia/Shanghai")
    process = recorder_process(api, ledger, FakeReadings())
    with running(process) as task, pytest.raises(UserError, match="Asia/Shanghai"):
        await task


async def test_while_the_store_is_down_the_process_is_not_ready_and_loses_nothing() -> None:
    api, ledger = FakeUsageApi(), MemoryLedger()
    process = recorder_process(api, ledger, FakeReadings())
    with running(process):
        await until(lambda: ledger.heartbeat > 0)
        ledger.down = StoreDown("connection refused")
        api.put(NODES, a_node("n", time.time()))
        api.put(PODS, a_pod("a", "n", time.time()))
        await until(lambda: process.unready != "")
        assert "connection refused" in process.unready
        assert api.recorder.waiting_since > 0
        ledger.down = None
        await until(lambda: len(ledger.pods) == 1)
        await until(lambda: process.unready == "")


async def test_a_process_that_has_lost_the_lease_counts_no_records() -> None:
    """What it could not store is written by the next holder, or inferred by it."""
    api, ledger = FakeUsageApi(), MemoryLedger()
    process, sock = recorder_process(api, ledger, FakeReadings()), bind_socket("127.0.0.1", 0)
    names = ("lag_seconds", "open_intervals", "pending_records")

    async def figures() -> list[float]:
        _, page = await ask(sock, "GET /metrics")
        lines = dict(each.rsplit(" ", 1) for each in page.splitlines() if each[:1] != "#")
        return [float(lines[f"fairlead_usage_recorder_{name}"]) for name in names]

    task = asyncio.ensure_future(process.service(sock).run())
    try:
        await until(lambda: ledger.heartbeat > 0)
        ledger.down = StoreDown("connection refused")
        api.put(NODES, a_node("n", time.time()))
        api.put(PODS, a_pod("a", "n", time.time()))
        await until(lambda: process.unready != "")
        lag, opened, waiting = await figures()
        assert lag > 0 and opened == 1 and waiting > 0
        await api.put_lease(LeaseRecord("another", 15, "now", "", 2, "1"))
        await until(lambda: not process.leader.is_held)
        assert await figures() == [0, 0, 0]
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_store_that_is_down_at_the_start_is_claimed_later() -> None:
    api, ledger = FakeUsageApi(), MemoryLedger()
    ledger.down = StoreDown("connection refused")
    process = recorder_process(api, ledger, FakeReadings())
    with running(process):
        await until(lambda: "connection refused" in process.unready)
        ledger.down = None
        await until(lambda: ledger.heartbeat > 0)


async def test_an_end_in_order_stores_the_hour_so_far_before_the_lease_is_released() -> None:
    api, ledger = FakeUsageApi(), MemoryLedger()
    api.put(NODES, a_node("n", time.time() - 100))
    api.put(PODS, a_pod("a", "n", time.time() - 50))
    process = recorder_process(api, ledger, FakeReadings())
    with running(process) as task:
        await until(lambda: len(ledger.pods) == 1)
        assert ledger.hours_of_pods == {}
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    (row,) = {key[0]: row for key, row in ledger.hours_of_pods.items()}.values()
    assert row.unknown > 0
    assert (await api.get_lease() or process).holder == ""  # type: ignore[union-attr]
