"""The Lease of operations on the installation, held beside a command that writes the same objects.

A thread renews it, because the installer blocks. Specification: docs/spec/operations.md#lease.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from concurrent.futures import Future
from typing import Any, Final

from fairlead.apps.leader import Leader, LeaseTimes
from fairlead.apps.operations.taking import (
    OPERATION_LEASE_TIMES,
    TAKE_OVER_SECONDS,
    is_taken,
)
from fairlead.console.http.data.record_changes import write_change
from fairlead.edge.connection.connection import Connection
from fairlead.edge.kube.kube_api import KubeApi
from fairlead.edge.operations.records import KubeOperationRecords
from fairlead.errors import Forbidden, NotFound, UserError
from fairlead.model.actions import ObjectRef
from fairlead.model.operations.operation import (
    INSTALLATION,
    Operation,
    OperationState,
    lock_of,
)
from fairlead.ports import LeaseApi, LeaseRecord
from fairlead.rules.operations.progress import superseded
from fairlead.run.invocation import process_identity
from fairlead.wire.operations.record import lease_name

_BEGIN_AGAIN: Final = (OperationState.RUNNING, OperationState.FAILED, OperationState.CANCELLED)
"""States in which an operation may begin to write again."""
_SAME_COMMAND: Final = "run the same command again"
Say = Callable[[str], object]


class InstallationLease:
    """`ports.WorkLease`. `namespace`: of the installation. `by`: the command, for the records of
    operations that it ends. `now`: of the cluster, epoch seconds. `say`: receives why it waits, and
    what it ended.
    """

    def __init__(
        self,
        connection: Connection,
        namespace: str,
        by: str,
        now: Callable[[], float],
        say: Say,
        times: LeaseTimes = OPERATION_LEASE_TIMES,
    ) -> None:
        self._connection = connection
        self._namespace = namespace
        self._by = by
        self._now = now
        self._say = say
        self._times = times

    @property
    def target(self) -> ObjectRef:
        name = lease_name(INSTALLATION)
        return ObjectRef("coordination.k8s.io/v1", "Lease", name, self._namespace)

    @contextlib.contextmanager
    def hold(self) -> Iterator[Callable[[], None]]:
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever, name="lease", daemon=True)
        thread.start()
        api = KubeApi(self._connection)
        records = KubeOperationRecords(api, self._namespace)
        holding = _Holding(records, self._by, self._now, self._say, self._times)

        def done(work: Coroutine[Any, Any, None]) -> None:
            future: Future[None] = asyncio.run_coroutine_threadsafe(work, loop)
            try:
                future.result()
            except BaseException:  # Ctrl-C, too: nothing may be left at work
                future.cancel()
                raise

        try:
            done(holding.take())
            yield holding.check
            done(holding.end_others())
        finally:
            try:
                done(holding.give_back())
                done(api.close())
            finally:
                loop.call_soon_threadsafe(loop.stop)
                thread.join()
                loop.close()


class _LeaseRefusedError(Exception):
    """The API server refuses to read or write the Lease."""


class _RefusableLease:
    """`ports.LeaseApi`. Raises _LeaseRefusedError while `is_refusal_expected`."""

    def __init__(self, lease: LeaseApi) -> None:
        self._lease = lease
        self.is_refusal_expected = True

    async def get_lease(self) -> LeaseRecord | None:
        return await self._answer(self._lease.get_lease())

    async def put_lease(self, record: LeaseRecord) -> LeaseRecord | None:
        return await self._answer(self._lease.put_lease(record))

    async def _answer(self, call: Awaitable[LeaseRecord | None]) -> LeaseRecord | None:
        try:
            return await call
        except (Forbidden, NotFound) as error:
            if self.is_refusal_expected:
                raise _LeaseRefusedError(error.what) from error
            raise


class _Holding:
    """The Lease while one block runs, in the event loop of the thread."""

    def __init__(
        self,
        records: KubeOperationRecords,
        by: str,
        now: Callable[[], float],
        say: Say,
        times: LeaseTimes,
    ) -> None:
        self._records = records
        self._by = by
        self._now = now
        self._say = say
        self._times = times
        self._renewing: asyncio.Task[None] | None = None
        self._is_without = False
        self._lease = _RefusableLease(records.lease(INSTALLATION))
        self._leader = Leader(self._lease, process_identity(), times=times)

    def check(self) -> None:
        if not self._is_without and not self._leader.is_held:
            what = f"the Lease of the installation was lost: {self._leader.trouble}"
            raise UserError(what, _SAME_COMMAND)

    async def take(self) -> None:
        """An uninstallation goes on where its namespace is gone, or is going."""
        try:
            is_held = await is_taken(
                self._leader,
                self._times,
                patience=TAKE_OVER_SECONDS,
                is_living_refused=True,
                monotonic=time.monotonic,
                sleep=asyncio.sleep,
                say=self._say,
            )
        except _LeaseRefusedError as error:
            self._is_without = True
            self._say(f"no Lease keeps operations of the console away: {error}")
            return
        if not is_held:
            raise await self._refusal()
        self._lease.is_refusal_expected = False
        self._renewing = asyncio.ensure_future(self._leader.run())
        await self.end_others()

    async def end_others(self) -> None:
        """Operations that a dead process left, that wait for the Lease, or that did not succeed:
        what they would write is not what is installed now.
        """

        def may_write(found: Operation) -> bool:
            return found.state in _BEGIN_AGAIN and not found.replaced_by

        def ended(found: Operation) -> Operation:
            return superseded(found, self._now(), self._by) if may_write(found) else found

        for each in await self._of_installation():
            if may_write(each):
                await write_change(self._records, each, ended)
                if each.state is OperationState.RUNNING:
                    self._say(f"operation `{each.id}` is ended: this command goes on in its place")

    async def give_back(self) -> None:
        if self._renewing is not None:
            self._renewing.cancel()
            await asyncio.gather(self._renewing, return_exceptions=True)
        await self._leader.release()

    async def _of_installation(self) -> list[Operation]:
        try:
            found = await self._records.list()
        except (Forbidden, NotFound):
            return []
        return [each for each in found if lock_of(each.subject) == INSTALLATION]

    async def _refusal(self) -> UserError:
        leader = self._leader
        if leader.holder in ("", leader.identity):
            return UserError(f"the Lease of the installation: {leader.trouble}", _SAME_COMMAND)
        for each in await self._of_installation():
            if each.state is OperationState.RUNNING and each.holder == leader.holder:
                hint = f"`fairlead operation follow {each.id}` shows it, `fairlead operation cancel"
                return UserError(
                    f"operation `{each.id}` is at work on the installation: {each.holder}",
                    f"{hint} {each.id}` ends it",
                )
        what = f"another command is at work on the installation: {leader.holder}"
        return UserError(what, f"{_SAME_COMMAND} when it has ended")
