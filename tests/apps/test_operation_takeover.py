"""Which operations a server carries out: those that run and that no other process holds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from msgspec import structs
from tests.console.clusters import EPOCH
from tests.console.data_parts import MemoryObjects, MemoryRecords
from tests.waiting import HANG_SECONDS, until

from fairlead.apps.leader import LeaseTimes
from fairlead.apps.operations.history import HistoryKeeper
from fairlead.apps.operations.runner import OperationRunner, OperationTaken
from fairlead.apps.operations.takeover import OperationTakeover
from fairlead.errors import OutsideError
from fairlead.model.actions import ObjectRef
from fairlead.model.operations.operation import (
    CreateStep,
    Operation,
    OperationKind,
    OperationState,
    OperationStep,
    ReadyStep,
    StepProgress,
    StepState,
)
from fairlead.ports import LeaseRecord

BRIEF = LeaseTimes(length=1, safe=0.8, renew=0.1, look=0.05, patience=0.5, fence=0.8)
CLAIM = ObjectRef("v1", "PersistentVolumeClaim", "raw", "a-ns")
BOUND = {"kind": CLAIM.kind, "metadata": {"name": "raw"}, "status": {"phase": "Bound"}}


def creating(id: str, state: OperationState = OperationState.RUNNING) -> Operation:
    """Creates one ConfigMap of its own."""
    manifest = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": id, "namespace": "a-ns"},
    }
    return Operation(
        id=id,
        kind=OperationKind.DEPLOY,
        subject=f"component/{id}",
        steps=(OperationStep(f"Create {id}", CreateStep(manifest)),),
        progress=(StepProgress(),),
        state=state,
        created_at=EPOCH,
        updated_at=EPOCH,
    )


def waiting(id: str) -> Operation:
    """Waits for a claim that does not exist."""
    return Operation(
        id=id,
        kind=OperationKind.PREHEAT,
        subject="dataset/a-ns/raw",
        steps=(OperationStep("wait", ReadyStep((CLAIM,))),),
        progress=(StepProgress(),),
        state=OperationState.RUNNING,
        created_at=EPOCH,
        updated_at=EPOCH,
    )


def runner_of(
    name: str,
    records: MemoryRecords,
    objects: MemoryObjects,
    *,
    leaves_waits: bool = False,
    say: Callable[[str], object] = str,
) -> OperationRunner:
    return OperationRunner(
        records,
        objects,
        None,
        name,
        now=lambda: EPOCH,
        times=BRIEF,
        leaves_waits=leaves_waits,
        say=say,
    )


class Process:
    """One process with its own loop over the same records and objects."""

    def __init__(self, name: str, records: MemoryRecords, objects: MemoryObjects) -> None:
        self.woken = asyncio.Event()
        runner = runner_of(name, records, objects)
        self._takeover = OperationTakeover(
            records, runner, self.woken, lambda: EPOCH, HistoryKeeper(records, None)
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Process]:
        task = asyncio.create_task(self._takeover.run())
        try:
            yield self
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def test_what_runs_is_carried_out_and_a_plan_is_not() -> None:
    records = MemoryRecords(creating("one"), creating("plan", OperationState.PLANNED))
    objects = MemoryObjects()
    async with Process("a", records, objects).running() as process:
        await until(lambda: records.by_id["one"].state is OperationState.SUCCEEDED)
        await records.create(creating("two"))
        process.woken.set()
        await until(lambda: records.by_id["two"].state is OperationState.SUCCEEDED)
    assert records.by_id["plan"].state is OperationState.PLANNED
    assert [each for each in objects.calls if each.startswith("create")] == [
        "create ConfigMap a-ns/one",
        "create ConfigMap a-ns/two",
    ]


async def test_of_two_processes_one_works_and_the_other_goes_on_when_it_stops() -> None:
    records, objects = MemoryRecords(waiting("one")), MemoryObjects()
    async with Process("b", records, objects).running():
        await until(lambda: records.by_id["one"].holder == "b")
        async with Process("c", records, objects).running():
            assert records.by_id["one"].holder == "b"
    # A stop gives the Lease back, so the next one need not wait for its end.
    assert records.leases["dataset/a-ns/raw"].holder == ""
    async with Process("d", records, objects).running():
        await until(lambda: records.by_id["one"].holder == "d")
        objects.objects[CLAIM.title] = BOUND
        await until(lambda: records.by_id["one"].state is OperationState.SUCCEEDED)


async def test_who_resumes_beside_a_living_process_is_refused_when_it_renews_its_lease() -> None:
    records, objects = MemoryRecords(waiting("one")), MemoryObjects()
    async with Process("b", records, objects).running():
        await until(lambda: records.by_id["one"].holder == "b")
        with pytest.raises(OperationTaken) as caught:
            async with asyncio.timeout(HANG_SECONDS):
                await runner_of("c", records, objects).resume("one", patience=3600.0)
        assert caught.value.what == "operation `one` is at work elsewhere: b"
        assert caught.value.hint == (
            "`fairlead operation follow one` shows it, `fairlead operation cancel one` ends it"
        )
        assert records.by_id["one"].holder == "b"


async def test_who_resumes_after_a_dead_process_waits_for_the_end_of_its_lease(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """One line names it."""
    records, objects = MemoryRecords(waiting("one")), MemoryObjects()
    subject = "dataset/a-ns/raw"
    records.leases[subject] = LeaseRecord("dead", BRIEF.length, "then", "", 1, "1")
    objects.objects[CLAIM.title] = BOUND
    lines: list[str] = []
    done = await runner_of("c", records, objects, say=lines.append).resume("one", patience=3600.0)
    assert done.state is OperationState.SUCCEEDED
    seconds = BRIEF.length
    (line,) = [*lines, *caplog.messages]
    assert line == f"waits for `dead`; if it does not live, its Lease ends after {seconds} s"


async def test_a_runner_that_leaves_waits_frees_holder_and_lease_for_another_process() -> None:
    first = structs.replace(creating("one"), subject="dataset/a-ns/raw")
    both = structs.replace(
        first,
        steps=(*first.steps, *waiting("one").steps),
        progress=(StepProgress(), StepProgress()),
    )
    records, objects = MemoryRecords(both), MemoryObjects()
    left = await runner_of("c", records, objects, leaves_waits=True).run("one")
    assert (left.state, left.holder) == (OperationState.RUNNING, "")
    assert [each.state for each in left.progress] == [StepState.DONE, StepState.RUNNING]
    assert left.progress[1].message == "does not exist"
    assert records.leases["dataset/a-ns/raw"].holder == ""
    assert records.by_id["one"].state is OperationState.RUNNING
    objects.objects[CLAIM.title] = BOUND
    async with Process("d", records, objects).running():
        await until(lambda: records.by_id["one"].state is OperationState.SUCCEEDED)


async def test_records_that_cannot_be_read_are_read_later() -> None:
    records, objects = MemoryRecords(creating("one")), MemoryObjects()
    records.failure = OutsideError("kubernetes", "no answer")
    async with Process("a", records, objects).running() as process:
        await until(lambda: not process.woken.is_set())
        records.failure = None
        process.woken.set()
        await until(lambda: records.by_id["one"].state is OperationState.SUCCEEDED)


async def test_old_records_are_removed() -> None:
    old = structs.replace(creating("old", OperationState.PLANNED), created_at=EPOCH - 1000)
    records = MemoryRecords(old, creating("plan", OperationState.PLANNED))
    async with Process("a", records, MemoryObjects()).running():
        await until(lambda: "old" not in records.by_id)
    assert "plan" in records.by_id
