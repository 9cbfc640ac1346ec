"""The operations of the cluster, as pages show and change them.

Pages write the records only; a loop of the console, or another process, carries operations out.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Final

from fairlead.console.http.answers import Refused
from fairlead.console.http.data.record_changes import Change, write_change
from fairlead.console.pages.data.operation_ids import is_id
from fairlead.errors import NotFound
from fairlead.model.actions import ObjectRef, object_ref
from fairlead.model.operations.operation import (
    ApplyStep,
    CreateStep,
    GoneStep,
    Operation,
    OperationState,
    ReadyStep,
    RemoveStep,
    lock_of,
)
from fairlead.ports import OperationCluster, OperationRecords
from fairlead.rules.installation.comparable import content_version
from fairlead.rules.operations.progress import begun, predecessor_of

READ_SECONDS: Final = 1.0
"""Shortest pause between two lists of the records."""
WATCHED_SECONDS: Final = 60.0
READS_AT_ONCE: Final = 8
PLANS_KEPT: Final = 64
"""Plans whose seen objects are remembered."""
_CLAIM: Final = "PersistentVolumeClaim"


class OperationDesk:
    """`now`: the cluster's time. `cluster`: the objects that plans have seen; None = no plan that
    names any may start. `woken`: is set when an operation has to be carried out.
    """

    def __init__(
        self,
        records: OperationRecords,
        now: Callable[[], float],
        cluster: OperationCluster | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.records = records
        self.now = now
        self._cluster = cluster
        self.woken = asyncio.Event()
        self._monotonic = monotonic
        self._asked_at = -WATCHED_SECONDS
        self._read_at = -READ_SECONDS
        self._last: tuple[Operation, ...] = ()
        self._reading = asyncio.Lock()
        self._targets: dict[str, dict[str, ObjectRef]] = {}

    @property
    def last(self) -> tuple[Operation, ...]:
        """What was read last, without asking."""
        return self._last

    @property
    def is_watched(self) -> bool:
        """Whether a page shows operations, or one is at work."""
        return self._monotonic() - self._asked_at < WATCHED_SECONDS or any(
            each.state is OperationState.RUNNING for each in self._last
        )

    async def list(self) -> tuple[Operation, ...]:
        """All, the newest first. Raises OutsideError."""
        self._asked_at = self._monotonic()
        return await self.read()

    async def read(self) -> tuple[Operation, ...]:
        async with self._reading:
            if self._monotonic() - self._read_at >= READ_SECONDS:
                self._last = await self.records.list()
                self._read_at = self._monotonic()
        return self._last

    async def find(self, id: str, by: str) -> Operation | None:
        """None for an unknown one and for the plan of another person."""
        found = await self.records.get(id) if is_id(id) else None
        return found if found is not None and is_seen(found, by) else None

    async def one(self, id: str, by: str) -> Operation:
        """Raises Refused, 404, if `find` finds none."""
        found = await self.find(id, by)
        if found is None:
            raise unknown_operation(id)
        return found

    async def at_work_on(self, subject: str) -> Operation | None:
        """The running operation of a subject, or of what shares its lock."""
        running, lock = OperationState.RUNNING, lock_of(subject)
        return next(
            (
                each
                for each in await self.records.list()
                if lock_of(each.subject) == lock and each.state is running
            ),
            None,
        )

    async def versions_of(self, plan: Operation) -> dict[str, str]:
        """The versions now of the objects that a plan has seen; "" = absent. An object that no step
        names cannot be read, and is left out: its plan counts as stale.
        """
        if self._cluster is None:
            return {}
        found: dict[str, str] = {}
        targets = {**seen_targets(plan), **self._targets.get(plan.id, {})}
        titles = [each for each in plan.seen if each in targets]
        for at in range(0, len(titles), READS_AT_ONCE):
            some = titles[at : at + READS_AT_ONCE]
            objects = await asyncio.gather(*(self._cluster.get(targets[each]) for each in some))
            found |= {each: content_version(obj) for each, obj in zip(some, objects, strict=True)}
        return found

    async def record(self, plan: Operation, targets: Mapping[str, ObjectRef]) -> Operation:
        """Keeps a plan for its maker. `targets`: what it has seen, by title. Raises as `start`.

        The objects of a chart are in no step, so only this process knows them: elsewhere, and after
        a restart, such a plan counts as stale.
        """
        made = await self._created(plan)
        self._targets[made.id] = dict(targets)
        while len(self._targets) > PLANS_KEPT:
            self._targets.pop(next(iter(self._targets)))
        return made

    async def start(self, plan: Operation) -> Operation:
        """A new operation, at work from now on. Raises Refused, 409, where nothing is installed."""
        return await self._created(begun(plan, "", self.now()))

    async def _created(self, operation: Operation) -> Operation:
        try:
            made = await self.records.create(operation)
        except NotFound as error:
            what = "operations are recorded in the namespace of an installation, and there is none"
            hint = f"install Fairlead with `fairlead install` ({error.what})"
            raise Refused(409, what, hint, code="blocked") from error
        self._wake()
        return made

    async def chain(self, plan: Operation, by: str) -> tuple[Operation, ...]:
        """The operations that have to succeed before this one, and it, the first one first. Raises
        Refused, 404, if one is gone or is another person's plan.
        """
        found = [plan]
        while before := predecessor_of(found[0]):
            found.insert(0, await self.one(before, by))
        return tuple(found)

    async def change(self, operation: Operation, change: Change) -> Operation:
        """Writes a change of a record, which the process at work writes, too.

        Raises ChangedMeanwhile if that process is faster each time.
        """
        made = await write_change(self.records, operation, change)
        self._wake()
        return made

    def _wake(self) -> None:
        self._read_at = self._monotonic() - READ_SECONDS
        self._asked_at = self._monotonic()
        self.woken.set()


def unknown_operation(id: str) -> Refused:
    return Refused(404, f"there is no operation `{id[:60]}`", "look at the operations")


def seen_targets(plan: Operation) -> dict[str, ObjectRef]:
    """The objects that a plan has seen and that its steps name, or that are claims, by title."""
    targets = {}
    for step in (*plan.steps, *plan.undo):
        work = step.work
        if isinstance(work, CreateStep | ApplyStep):
            target = object_ref(work.manifest, plural=work.plural)
            targets[target.title] = target
        elif isinstance(work, RemoveStep | ReadyStep | GoneStep):
            targets |= {each.title: each for each in work.targets}
    for title in plan.seen:
        kind, _, place = title.partition(" ")
        namespace, _, name = place.partition("/")
        if kind == _CLAIM and name:
            targets[title] = ObjectRef("v1", _CLAIM, name, namespace)
    return {title: targets[title] for title in plan.seen if title in targets}


def is_seen(operation: Operation, by: str) -> bool:
    """A plan is for the person who made it; everything else is for all administrators."""
    return operation.state is not OperationState.PLANNED or operation.created_by == by
