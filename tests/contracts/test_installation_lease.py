"""Contract: a command that writes the installation and an operation of the console on it never work
at once, and each goes on where the other was killed (docs/spec/operations.md#lease). Over the
simulated and the real API server.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from msgspec import structs
from tests.contracts.api_client import ApiClient
from tests.contracts.operation_bench import Bench, on_bench
from tests.waiting import HANG_SECONDS

from fairlead.apps.leader import LeaseTimes
from fairlead.apps.operations.runner import OperationRunner, OperationTaken
from fairlead.edge.connection.kubeconfig import find_connection
from fairlead.errors import UserError
from fairlead.model.operations.operation import (
    ApplyStep,
    Operation,
    OperationKind,
    OperationState,
    OperationStep,
    ReadyStep,
    StepState,
)
from fairlead.ports import LeaseRecord
from fairlead.rules.operations.progress import begun, ended, planned
from fairlead.run.commands.installation_lease import InstallationLease

pytestmark = pytest.mark.turns(2, 1)

SUBJECT = "installation/quota"
TIMES = LeaseTimes(length=2, safe=1.5, renew=0.3, look=0.1, patience=5.0, fence=1.5)
"""A dead process's Lease ends after 2 s."""


class Line:
    """A command and a console on one namespace. `said`: lines of the command."""

    def __init__(self, api: ApiClient, bench: Bench) -> None:
        connection = find_connection(str(api.kubeconfig), None, env={})
        assert connection is not None
        self.bench = bench
        self.lines: list[str] = []
        self.lease = InstallationLease(
            connection, bench.space, "fairlead upgrade", lambda: 2000.0, self.lines.append, TIMES
        )

    async def clicked(self) -> str:
        """An operation that has begun on the page: it applies one object and waits for another."""
        steps = (
            OperationStep("apply", ApplyStep(self.bench.config_map("applied", by="page"))),
            OperationStep("ready", ReadyStep((self.bench.ref("later"),))),
        )
        id = f"page{len(await self.bench.records.list())}"
        plan = planned(id, OperationKind.DEPLOY, SUBJECT, steps, now=1000.0)
        await self.bench.records.create(begun(plan, "", 1000.0))
        return id

    def console(self, report: Callable[[Operation], object] = str) -> OperationRunner:
        """A process of its own, with real time."""
        return OperationRunner(
            self.bench.records, self.bench.cluster, None, "console", times=TIMES, report=report
        )

    async def found(self, id: str) -> Operation:
        found = await self.bench.records.get(id)
        assert found is not None
        return found


def on_line(api: ApiClient, work: Callable[[Line], Awaitable[Any]]) -> None:
    async def run(bench: Bench) -> None:
        async with asyncio.timeout(HANG_SECONDS):
            await work(Line(api, bench))

    on_bench(api, run)


def test_a_command_refuses_while_the_console_is_at_work(api: ApiClient) -> None:
    async def work(line: Line) -> None:
        id = await line.clicked()
        is_waiting = asyncio.Event()

        def report(operation: Operation) -> None:
            if operation.progress[1].state is StepState.RUNNING:
                is_waiting.set()

        running = asyncio.ensure_future(line.console(report).run(id))
        await is_waiting.wait()
        with pytest.raises(UserError) as refused:
            await asyncio.to_thread(lambda: line.lease.hold().__enter__())
        assert refused.value.what == f"operation `{id}` is at work on the installation: console"
        assert f"`fairlead operation cancel {id}`" in refused.value.hint
        await line.bench.cluster.create(line.bench.config_map("later"))
        assert (await running).state is OperationState.SUCCEEDED
        with line.lease.hold() as check:
            check()
        assert (await line.found(id)).state is OperationState.SUCCEEDED

    on_line(api, work)


def test_the_console_does_not_begin_while_a_command_is_at_work(api: ApiClient) -> None:
    async def work(line: Line) -> None:
        def command() -> contextlib.ExitStack:
            stack = contextlib.ExitStack()
            stack.enter_context(line.lease.hold())
            return stack

        stack = await asyncio.to_thread(command)
        id = await line.clicked()
        with pytest.raises(OperationTaken):
            await line.console().run(id)
        waiting = asyncio.ensure_future(line.console().run(id, patience=60.0))
        await asyncio.to_thread(stack.close)
        # its plan was made before the command wrote
        assert (await waiting).state is OperationState.CANCELLED
        found = await line.found(id)
        assert found.message == "`fairlead upgrade` went on in its place"
        assert [each.state for each in found.progress] == [StepState.SKIPPED] * 2
        assert await line.bench.cluster.get(line.bench.ref("applied")) is None
        assert line.lines == [f"operation `{id}` is ended: this command goes on in its place"]

    on_line(api, work)


def test_a_command_goes_on_where_a_console_was_killed(api: ApiClient) -> None:
    async def work(line: Line) -> None:
        id = await line.clicked()
        begun_at = asyncio.Event()
        running = asyncio.ensure_future(line.console(lambda _each: begun_at.set()).run(id))
        await begun_at.wait()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        dead = LeaseRecord("dead console", 2)  # a killed process does not give it back
        lease = line.bench.records.lease(SUBJECT)
        free = await lease.get_lease()
        assert free is not None and not free.holder
        assert await lease.put_lease(LeaseRecord(dead.holder, dead.seconds, version=free.version))

        def command() -> None:
            with line.lease.hold() as check:
                check()

        await asyncio.to_thread(command)
        waits, ended = line.lines
        assert waits.startswith("waits for `dead console`")
        assert ended == f"operation `{id}` is ended: this command goes on in its place"
        assert (await line.found(id)).state is OperationState.CANCELLED
        with pytest.raises(UserError) as refused:  # its plan would undo what the command wrote
            await line.console().resume(id)
        assert refused.value.what == (
            f"operation `{id}` cannot begin again: `fairlead upgrade` went on in its place"
        )
        assert (await line.found(id)).state is OperationState.CANCELLED

    on_line(api, work)


def test_what_failed_before_a_command_does_not_begin_again_after_it(api: ApiClient) -> None:
    async def work(line: Line) -> None:
        def command() -> None:
            with line.lease.hold() as check:
                check()

        id = await line.clicked()
        failed = ended(await line.found(id), 1500.0)
        await line.bench.records.save(structs.replace(failed, state=OperationState.FAILED))
        await asyncio.to_thread(command)
        assert line.lines == []
        found = await line.found(id)
        assert (found.state, found.updated_at) == (OperationState.FAILED, 1500.0)
        with pytest.raises(UserError) as refused:
            await line.console().resume(id)
        assert refused.value.what == (
            f"operation `{id}` cannot begin again: `fairlead upgrade` went on in its place"
        )
        assert await line.bench.cluster.get(line.bench.ref("applied")) is None

    on_line(api, work)


def test_a_command_whose_lease_another_process_took_stops(api: ApiClient) -> None:
    async def work(line: Line) -> None:
        def command() -> None:
            end = time.monotonic() + 20
            with line.lease.hold() as check:
                while time.monotonic() < end:
                    check()

        holding = asyncio.ensure_future(asyncio.to_thread(command))
        lease = line.bench.records.lease(SUBJECT)
        while True:
            found = await lease.get_lease()
            if found is not None and found.holder:
                other = LeaseRecord("another", 2, version=found.version)
                if await lease.put_lease(other) is not None:
                    break
            await asyncio.sleep(0)
        with pytest.raises(UserError) as stopped:
            await holding
        assert stopped.value.what.startswith("the Lease of the installation was lost: ")

    on_line(api, work)


def test_without_its_namespace_an_uninstallation_goes_on(api: ApiClient) -> None:
    async def work(line: Line) -> None:
        connection = find_connection(str(api.kubeconfig), None, env={})
        assert connection is not None
        lease = InstallationLease(
            connection, "gone", "fairlead uninstall", float, line.lines.append
        )

        def command() -> None:
            with lease.hold() as check:
                check()

        await asyncio.to_thread(command)
        (reason,) = line.lines
        assert reason.startswith("no Lease keeps operations of the console away: ")

    on_line(api, work)
