"""Operations of a command: recorded in the cluster, carried out in this process.

A user who may not write records, or a cluster without an installation, gets the same steps without
a record; the command warns that no other process can go on with them.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

from msgspec import structs

from fairlead.apps.operations.runner import OperationRunner
from fairlead.apps.operations.taking import TAKE_OVER_SECONDS
from fairlead.cli.frame.messages import Messages
from fairlead.console.http.data.record_changes import write_change
from fairlead.edge.connection.connection import Connection
from fairlead.edge.kube.kube_api import KubeApi
from fairlead.edge.operations.objects import KubeOperationCluster
from fairlead.edge.operations.records import KubeOperationRecords
from fairlead.errors import ChangedMeanwhile, FairleadError, Forbidden, NotFound, UserError
from fairlead.model.operations.operation import Operation, OperationState
from fairlead.ports import Helm, LeaseRecord, OperationRecords
from fairlead.rules.operations.progress import begun, cancelled, predecessor_of
from fairlead.run.invocation import process_identity

Answer = TypeVar("Answer")
Report = Callable[[Operation], object]


class CommandOperations:
    """See `cli.context.ClusterOperations`. `namespace`: of records; `makes_namespace`: create it
    for the first record. `now`: of the cluster; its clock is read once. `submitter`: asks for the
    name of this command's user.
    """

    def __init__(
        self,
        connection: Connection,
        namespace: str,
        now: float,
        messages: Messages,
        submitter: Callable[[], str],
        *,
        helm: Helm | None = None,
        makes_namespace: bool = False,
    ) -> None:
        self._connection = connection
        self._namespace = namespace
        self._messages = messages
        self._submitter = submitter
        self._helm = helm
        self._makes_namespace = makes_namespace
        self._offset = now - time.time()

    def now(self) -> float:
        return time.time() + self._offset

    def list(self) -> tuple[Operation, ...]:
        return self._run(lambda _api, records: records.list())

    def get(self, id: str) -> Operation | None:
        return self._run(lambda _api, records: records.get(id))

    def start(
        self, operation: Operation, report: Report, *, leaves_waits: bool = False
    ) -> Operation:
        async def started(api: KubeApi, records: KubeOperationRecords) -> Operation:
            kept: OperationRecords = records
            named = structs.replace(operation, created_by=self._submitter())
            recorded = begun(named, "", self.now())
            try:
                await records.create(recorded)
            except (Forbidden, NotFound) as error:
                self._warn_unrecorded(error)
                kept = _UnrecordedOperations(recorded)
            return await self._runner(api, kept, report, leaves_waits).run(operation.id)

        return self._run(started)

    def start_all(self, operations: Sequence[Operation], report: Report) -> tuple[Operation, ...]:
        async def started(api: KubeApi, records: KubeOperationRecords) -> tuple[Operation, ...]:
            by = self._submitter()
            plans = [structs.replace(each, created_by=by) for each in operations]
            plans[-1] = begun(plans[-1], "", self.now())  # which begins the ones before it
            kept: OperationRecords = records
            try:
                for each in plans:
                    await records.create(each)
            except (Forbidden, NotFound) as error:
                self._warn_unrecorded(error)
                kept = _UnrecordedOperations(*plans)
            runner = self._runner(api, kept, report, leaves_waits=False)
            # All at once, so that this process holds all Leases.
            return tuple(await asyncio.gather(*(runner.run(each.id) for each in plans)))

        return self._run(started)

    def resume(self, id: str, report: Report, *, leaves_waits: bool = False) -> Operation:
        async def resumed(api: KubeApi, records: KubeOperationRecords) -> Operation:
            runner = self._runner(api, records, report, leaves_waits=leaves_waits)
            for each in await _unfinished_before(records, id):
                if each.state is OperationState.PLANNED:
                    with contextlib.suppress(ChangedMeanwhile):  # begun meanwhile
                        await records.save(begun(each, "", self.now()))
                await runner.resume(each.id, patience=TAKE_OVER_SECONDS)
            return await runner.resume(id, patience=TAKE_OVER_SECONDS)

        return self._run(resumed)

    def cancel(self, id: str) -> Operation:
        def stopped(found: Operation) -> Operation:
            if found.state.is_ended:
                raise UserError(f"operation `{id}` has ended: {found.state.value}")
            return cancelled(found, self.now())

        async def asked(_api: KubeApi, records: KubeOperationRecords) -> Operation:
            found = await records.get(id)
            if found is None:
                hint = "`fairlead operation list` shows what is recorded"
                raise UserError(f"there is no operation `{id}`", hint)
            return await write_change(records, found, stopped)

        return self._run(asked)

    def _warn_unrecorded(self, error: FairleadError) -> None:
        self._messages.warn(
            f"the operation is not recorded: {error.what}; if this command is interrupted, run it "
            "again"
        )

    def _runner(
        self, api: KubeApi, records: OperationRecords, report: Report, leaves_waits: bool
    ) -> OperationRunner:
        return OperationRunner(
            records,
            KubeOperationCluster(api),
            self._helm,
            process_identity(),
            now=self.now,
            report=report,
            leaves_waits=leaves_waits,
            say=self._messages.info,
        )

    def _run(
        self, work: Callable[[KubeApi, KubeOperationRecords], Coroutine[Any, Any, Answer]]
    ) -> Answer:
        async def connected() -> Answer:
            async with KubeApi(self._connection) as api:
                records = KubeOperationRecords(
                    api, self._namespace, makes_namespace=self._makes_namespace
                )
                return await work(api, records)

        return asyncio.run(connected())


async def _unfinished_before(records: OperationRecords, id: str) -> list[Operation]:
    """The operations that have to succeed before this one and have not, the first one first.

    A plan has not been chosen to begin, and begins none.
    """
    found: list[Operation] = []
    each = await records.get(id)
    if each is None or each.state is OperationState.PLANNED:
        return found
    while each is not None and (before := predecessor_of(each)):
        each = await records.get(before)
        if each is None or each.state is OperationState.SUCCEEDED:
            break
        found.insert(0, each)
    return found


class _UnrecordedOperations:
    """Operations in memory (`ports.OperationRecords`), with Leases that are always free."""

    def __init__(self, *operations: Operation) -> None:
        self._operations = {each.id: each for each in operations}

    async def create(self, operation: Operation) -> Operation:
        return await self.save(operation)

    async def get(self, id: str) -> Operation | None:
        return self._operations.get(id)

    async def list(self) -> tuple[Operation, ...]:
        return tuple(self._operations.values())

    async def save(self, operation: Operation) -> Operation:
        self._operations[operation.id] = operation
        return operation

    async def remove(self, id: str) -> None:
        """It ends with the process."""

    def lease(self, _subject: str) -> _FreeLease:
        return _FreeLease()


class _FreeLease:
    def __init__(self) -> None:
        self._lease: LeaseRecord | None = None

    async def get_lease(self) -> LeaseRecord | None:
        return self._lease

    async def put_lease(self, record: LeaseRecord) -> LeaseRecord | None:
        self._lease = structs.replace(
            record, version="1", renewed=record.renewed or secrets.token_hex(4)
        )
        return self._lease
