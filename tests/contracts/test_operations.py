"""Contract: an operation ends the same, whatever happens to the process that carries it out
(docs/spec/operations.md). Over the simulated and the real API server.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.contracts.api_client import ApiClient
from tests.contracts.conftest import new_space

from fairlead.apps.operations.runner import OperationRunner, OperationTaken
from fairlead.edge.connection.kubeconfig import find_connection
from fairlead.edge.kube.kube_api import KubeApi
from fairlead.edge.operations.objects import KubeOperationCluster
from fairlead.edge.operations.records import KubeOperationRecords
from fairlead.errors import ChangedMeanwhile, OutsideError
from fairlead.model.actions import ObjectRef
from fairlead.model.operations.operation import (
    ApplyStep,
    CreateStep,
    GoneStep,
    Operation,
    OperationKind,
    OperationState,
    OperationStep,
    ReadyStep,
    RemoveStep,
    StepState,
)
from fairlead.rules.operations.progress import begun, cancelled, planned

_ids = itertools.count(1)
Work = Callable[["Bench"], Awaitable[Any]]


class Death(BaseException):
    """The process is killed: nothing more of it runs, and it gives nothing back."""


class Fault:
    """What happens at one call of all: death `before` or `after` it, or its answer is `lost`."""

    def __init__(self, number: int = 0, how: str = "") -> None:
        self.number = number
        self.how = how
        self.calls = 0
        self.is_dead = False

    async def around(self, call: Callable[[], Awaitable[Any]]) -> Any:
        if self.is_dead:
            raise Death
        self.calls += 1
        if self.calls != self.number:
            return await call()
        if self.how == "before":
            self.is_dead = True
            raise Death
        await call()
        if self.how == "after":
            self.is_dead = True
            raise Death
        raise OutsideError("kubernetes", "the answer was lost")


class Faulty:
    """A port, each call of which passes a fault."""

    def __init__(self, port: Any, fault: Fault) -> None:
        self._port = port
        self._fault = fault

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._port, name)
        if name == "lease":
            return lambda subject: Faulty(found(subject), self._fault)

        async def called(*words: Any, **named: Any) -> Any:
            return await self._fault.around(lambda: found(*words, **named))

        return called


class PlayedClock:
    """Time that only sleeping moves."""

    def __init__(self) -> None:
        self.at = 1000.0

    def now(self) -> float:
        return self.at

    async def sleep(self, seconds: float) -> None:
        self.at += seconds
        await asyncio.sleep(0)


class Bench:
    """One namespace of one API server, with records and objects."""

    def __init__(self, api: KubeApi, space: str) -> None:
        self.space = space
        self.records = KubeOperationRecords(api, space)
        self.cluster = KubeOperationCluster(api)
        self.clock = PlayedClock()

    def runner(self, fault: Fault | None = None) -> OperationRunner:
        found = fault or Fault()
        return OperationRunner(
            Faulty(self.records, found),
            Faulty(self.cluster, found),
            None,
            f"process-{next(_ids)}",
            now=self.clock.now,
            monotonic=self.clock.now,
            sleep=self.clock.sleep,
        )

    def ref(self, name: str) -> ObjectRef:
        return ObjectRef("v1", "ConfigMap", name, self.space)

    def config_map(self, name: str, **data: str) -> dict[str, Any]:
        meta = {"name": name, "namespace": self.space}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}

    async def recorded(self, *steps: OperationStep, undo: tuple[OperationStep, ...] = ()) -> str:
        id = f"test{next(_ids)}"
        plan = planned(
            id, OperationKind.DEPLOY, f"component/{id}", steps, undo=undo, now=self.clock.now()
        )
        await self.records.create(begun(plan, "", self.clock.now()))
        return id

    async def good(self) -> str:
        """An operation with every kind of step; `old` exists before it."""
        await self.cluster.create(self.config_map("old"))
        return await self.recorded(
            OperationStep("create", CreateStep(self.config_map("created", a="1"))),
            OperationStep("apply", ApplyStep(self.config_map("applied", b="2"))),
            OperationStep("apply", ApplyStep(self.config_map("beside", c="3"))),
            OperationStep("ready", ReadyStep((self.ref("created"), self.ref("applied")))),
            OperationStep("remove", RemoveStep((self.ref("old"),))),
            OperationStep("gone", GoneStep((self.ref("old"),))),
        )

    async def bad(self) -> str:
        """Its second step fails, because another program made `foreign`."""
        await self.cluster.create(self.config_map("foreign", owner="other"))
        names = ("created", "foreign")
        return await self.recorded(
            *(OperationStep(each, CreateStep(self.config_map(each))) for each in names),
            OperationStep("ready", ReadyStep((self.ref("created"),))),
            undo=(OperationStep("undo", RemoveStep(tuple(map(self.ref, names)))),),
        )

    async def end(self, id: str) -> Any:
        """How the operation ended, and what there is then."""
        found = await self.records.get(id)
        assert found is not None
        names = ("created", "applied", "beside", "old", "foreign")
        objects = [await self.cluster.get(self.ref(name)) for name in names]
        data = {
            name: each.get("data")
            for name, each in zip(names, objects, strict=True)
            if each is not None
        }
        for name in data:
            await self.cluster.remove(self.ref(name))
        progress = [each.state.value for each in (*found.progress, *found.undo_progress)]
        return found.state.value, found.holder, progress, data


def on_bench(api: ApiClient, work: Work) -> Any:
    async def run() -> Any:
        connection = find_connection(str(api.kubeconfig), None, env={})
        assert connection is not None
        async with KubeApi(connection) as kube:
            return await work(Bench(kube, new_space(api)))

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("begin", "expected"),
    [
        (
            "good",
            (
                "Succeeded",
                "",
                ["Done"] * 6,
                {"created": {"a": "1"}, "applied": {"b": "2"}, "beside": {"c": "3"}},
            ),
        ),
        (
            "bad",
            ("Failed", "", ["Done", "Failed", "Skipped", "Done"], {"foreign": {"owner": "other"}}),
        ),
    ],
)
def test_a_process_may_die_at_every_call(api: ApiClient, begin: str, expected: Any) -> None:
    """Before and after each call, or the answer is lost: the end is that of an undisturbed run."""

    async def work(bench: Bench) -> None:
        calls = Fault()
        id = await getattr(bench, begin)()
        await bench.runner(calls).run(id)
        assert await bench.end(id) == expected
        assert calls.calls > 12
        for number in range(1, calls.calls + 1):
            for how in ("before", "after", "lost"):
                id = await getattr(bench, begin)()
                fault = Fault(number, how)
                # a death while the Lease is renewed, or given back at the end, ends nothing else
                with contextlib.suppress(Death, OutsideError):
                    await bench.runner(fault).run(id)
                assert fault.calls >= number
                # a second process: the Lease of the first has to end
                await bench.runner().resume(id, patience=60.0)
                assert await bench.end(id) == expected, (number, how)

    on_bench(api, work)


def test_a_second_process_does_not_work_beside_the_first(api: ApiClient) -> None:
    async def work(bench: Bench) -> None:
        waiting = OperationStep("ready", ReadyStep((bench.ref("later"),)))
        id = await bench.recorded(waiting)
        begun_at = asyncio.Event()

        async def pause(seconds: float) -> None:
            begun_at.set()
            await asyncio.sleep(0)

        first = OperationRunner(
            bench.records,
            bench.cluster,
            None,
            "first",
            now=bench.clock.now,
            monotonic=bench.clock.now,
            sleep=pause,
        )
        running = asyncio.ensure_future(first.run(id))
        async with asyncio.timeout(60):
            await begun_at.wait()
            with pytest.raises(OperationTaken) as taken:
                await bench.runner().run(id)
            assert "first" in taken.value.what
            await bench.cluster.create(bench.config_map("later"))
            done = await running
        assert done.state is OperationState.SUCCEEDED
        assert (await bench.runner().run(id)).state is OperationState.SUCCEEDED

    on_bench(api, work)


def test_what_waits_can_be_cancelled_and_is_undone(api: ApiClient) -> None:
    async def work(bench: Bench) -> None:
        id = await bench.recorded(
            OperationStep("create", CreateStep(bench.config_map("created"))),
            OperationStep("ready", ReadyStep((bench.ref("later"),))),
            undo=(OperationStep("undo", RemoveStep((bench.ref("created"),))),),
        )
        seen: list[Operation] = []

        async def pause(seconds: float) -> None:
            """The first wait: another process asks to cancel."""
            if not seen:
                found = await bench.records.get(id)
                assert found is not None
                seen.append(found)
                await bench.records.save(cancelled(found, bench.clock.now()))
            await asyncio.sleep(0)

        runner = OperationRunner(
            bench.records,
            bench.cluster,
            None,
            "first",
            now=bench.clock.now,
            monotonic=bench.clock.now,
            sleep=pause,
        )
        done = await runner.run(id)
        assert seen[0].progress[1].message == "does not exist"
        assert seen[0].progress[1].object == bench.ref("later").title
        assert done.state is OperationState.CANCELLED
        assert [each.state for each in done.progress] == [StepState.DONE, StepState.SKIPPED]
        assert await bench.cluster.get(bench.ref("created")) is None
        again = await bench.records.get(id)
        assert again is not None and again.progress == done.progress

    on_bench(api, work)


def test_a_wait_ends_after_its_time_with_the_object(api: ApiClient) -> None:
    async def work(bench: Bench) -> None:
        id = await bench.recorded(
            OperationStep("ready", ReadyStep((bench.ref("later"),), seconds=20.0))
        )
        done = await bench.runner().run(id)
        assert done.state is OperationState.FAILED
        title = bench.ref("later").title
        assert done.message == f"ready: {title} after 20 s: does not exist"

    on_bench(api, work)


def test_a_record_keeps_every_field(api: ApiClient) -> None:
    async def work(bench: Bench) -> None:
        id = await bench.good()
        first = await bench.records.get(id)
        assert first is not None and first.version
        changed = begun(first, "a holder", 123.5)
        saved = await bench.records.save(changed)
        assert await bench.records.get(id) == saved
        with pytest.raises(ChangedMeanwhile):
            await bench.records.save(changed)
        assert [each.id for each in await bench.records.list()] == [id]
        await bench.records.remove(id)
        assert await bench.records.get(id) is None
        with pytest.raises(ChangedMeanwhile):
            await bench.records.save(saved)

    on_bench(api, work)


def test_a_config_map_that_is_no_record_hides_no_other(
    api: ApiClient, caplog: pytest.LogCaptureFixture
) -> None:
    async def work(bench: Bench) -> None:
        id = await bench.good()
        for number, data in enumerate(({}, {"state": "{"}, {"state": "null"})):
            other = bench.config_map(f"operation-other{number}", **data)
            other["metadata"]["labels"] = {"fairlead.io/operation": "deploy"}
            await bench.cluster.create(other)
        assert [each.id for each in await bench.records.list()] == [id]
        with pytest.raises(OutsideError, match="operation-other0"):
            await bench.records.get("other0")

    on_bench(api, work)
    assert "operation-other2" in caplog.text
