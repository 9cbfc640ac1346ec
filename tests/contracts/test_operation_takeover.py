"""Contract: servers carry out what pages began and what dead processes left, one process at a time
(docs/spec/operations.md#lease). Over both API servers.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.contracts.api_client import ApiClient
from tests.contracts.operation_bench import Bench, Death, Fault, on_bench
from tests.waiting import HANG_SECONDS

from fairlead.apps.leader import LeaseTimes
from fairlead.apps.operations.history import HistoryKeeper
from fairlead.apps.operations.runner import OperationRunner
from fairlead.apps.operations.takeover import OperationTakeover
from fairlead.edge.store.address import SQLITE, StoreAddress
from fairlead.edge.store.opened import open_store
from fairlead.model.operations.operation import OperationState, OperationStep, ReadyStep
from fairlead.model.records.rows import OperationRow

pytestmark = pytest.mark.turns(2, 0)

SHORT = LeaseTimes(length=2, safe=1.5, renew=0.4, look=0.1, patience=1.0, fence=1.5)
"""So that a dead process's Lease ends in two seconds."""


def test_two_servers_finish_each_operation_once(api: ApiClient, tmp_path: Path) -> None:
    async def work(bench: Bench) -> None:
        store = await open_store(StoreAddress(SQLITE, file=str(tmp_path / "store")))
        left = await bench.good()
        try:
            await bench.runner(Fault(9, "after"), SHORT).run(left)
        except Death:
            pass
        else:
            raise AssertionError("the first process had ended before it was killed")
        ready = ReadyStep((bench.ref("applied"),))
        begun = await bench.recorded(OperationStep("ready", ready))
        states: dict[str, list[str]] = {left: [], begun: []}
        are_kept = asyncio.Event()

        class Noted:
            """The store's history, which notes when it has both."""

            forget_operations = store.forget_operations
            operation_rows = store.operation_rows

            async def keep_operation(self, row: OperationRow) -> None:
                await store.keep_operation(row)
                if len(await store.operation_rows(10)) == 2:
                    are_kept.set()

        def server(name: str) -> OperationTakeover:
            runner = OperationRunner(
                bench.records,
                bench.cluster,
                None,
                name,
                now=bench.clock.now,
                times=SHORT,
                report=lambda each: states[each.id].append(f"{name} {each.state.value}"),
            )
            history = HistoryKeeper(bench.records, Noted())
            return OperationTakeover(
                bench.records, runner, asyncio.Event(), bench.clock.now, history
            )

        servers = [asyncio.ensure_future(server(name).run()) for name in ("one", "other")]
        try:
            async with asyncio.timeout(HANG_SECONDS):
                await are_kept.wait()
        finally:
            for each in servers:
                each.cancel()
            await asyncio.gather(*servers, return_exceptions=True)
        rows = {each.id: each.state for each in await store.operation_rows(10)}
        assert rows == dict.fromkeys((left, begun), OperationState.SUCCEEDED)
        for reports in states.values():
            assert len({each.split()[0] for each in reports}) == 1
        await store.close()

    on_bench(api, work)
