"""Contract: an operation ends the same, whatever happens to the process that carries it out
(docs/spec/operations.md). Over the simulated and the real API server.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest
from msgspec import structs
from tests.contracts.api_client import ApiClient
from tests.contracts.operation_bench import Bench, Death, Fault, deaths, on_bench
from tests.turns import in_turn
from tests.waiting import HANG_SECONDS

from fairlead.apps.operations.runner import OperationRunner, OperationTaken
from fairlead.errors import ChangedMeanwhile, OutsideError
from fairlead.model.operations.operation import (
    CreateStep,
    Operation,
    OperationState,
    OperationStep,
    ReadyStep,
    RemoveStep,
    StepState,
)
from fairlead.rules.operations.progress import begun, cancelled

HOWS = ("before", "after", "lost")


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
    """Before or after each call, or the answer is lost: the end is that of an undisturbed run.

    A run tries a third of the deaths.
    """

    async def work(bench: Bench) -> None:
        calls = Fault()
        id = await getattr(bench, begin)()
        await bench.runner(calls).run(id)
        assert await bench.end(id) == expected
        assert calls.calls > 12
        for number, how in in_turn(deaths(api, calls.calls, HOWS), 3):
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


async def process(bench: Bench, ids: tuple[str, ...], fault: Fault | None = None) -> None:
    """What a server does: it carries out what has begun, until nothing is left."""
    runner = bench.runner(fault)
    work: dict[str, asyncio.Task[Operation]] = {}
    try:
        while True:
            found = [await bench.records.get(id) for id in ids]
            for each in found:
                assert each is not None
                if each.state is OperationState.RUNNING and each.id not in work:
                    work[each.id] = asyncio.create_task(runner.run(each.id, patience=60.0))
            if all(each is not None and each.state.is_ended for each in found):
                return
            for id in [id for id, task in work.items() if task.done()]:
                with contextlib.suppress(OperationTaken):  # one's waits move the other's clock
                    await work[id]  # raises Death
                del work[id]
            await asyncio.sleep(0)
    finally:
        for task in work.values():
            task.cancel()
        await asyncio.gather(*work.values(), return_exceptions=True)


def test_one_start_carries_out_what_follows_each_other(api: ApiClient) -> None:
    """A process may die at every call of both operations. A run tries a part of the deaths."""
    is_simulated = api.name == "simulated"

    async def work(bench: Bench) -> None:
        calls = Fault()
        ids = await bench.chain()
        await process(bench, ids, calls)
        expected = await ends(bench, ids)
        assert expected[0] == ["Succeeded", "Succeeded"]
        # a real server takes longer
        for number, how in in_turn(deaths(api, calls.calls, HOWS), 3 if is_simulated else 5):
            ids = await bench.chain()
            fault = Fault(number, how)
            with contextlib.suppress(Death, OutsideError):
                await process(bench, ids, fault)
            await process(bench, ids)
            assert await ends(bench, ids) == expected, (number, how)

    on_bench(api, work)


async def ends(bench: Bench, ids: tuple[str, ...]) -> Any:
    states = []
    for id in ids:
        found = await bench.records.get(id)
        assert found is not None
        states.append(found.state.value)
    return states, (await bench.end(ids[0]))[3]


def test_what_follows_a_failed_operation_does_not_begin(api: ApiClient) -> None:
    async def work(bench: Bench) -> None:
        await bench.cluster.create(bench.config_map("created", owner="other"))
        ids = await bench.chain()
        await process(bench, ids)
        first, last = [await bench.records.get(id) for id in ids]
        assert first is not None and last is not None
        assert (first.state, last.state) == (OperationState.FAILED, OperationState.FAILED)
        assert f"operation `{first.id}` ({first.subject}) is Failed" in last.message
        assert await bench.cluster.get(bench.ref("applied")) is None

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
        async with asyncio.timeout(HANG_SECONDS):
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


def test_a_list_reads_again_only_what_changed(api: ApiClient) -> None:
    async def work(bench: Bench) -> None:
        async def listed() -> tuple[dict[str, str], int]:
            before = bench.api.requests_total
            found = await bench.records.list()
            return {each.id: each.message for each in found}, bench.api.requests_total - before

        ids = [await bench.recorded() for _ in range(3)]
        everything = dict.fromkeys(ids, "")
        assert await listed() == (everything, 1)
        assert await listed() == (everything, 1), "names and versions"
        found = await bench.records.get(ids[1])
        assert found is not None
        await bench.records.save(structs.replace(found, message="changed"))
        everything[ids[1]] = "changed"
        assert await listed() == (everything, 2)
        other = bench.config_map("operation-none")
        other["metadata"]["labels"] = {"fairlead.io/operation": "deploy"}
        await bench.cluster.create(other)
        assert (await listed(), await listed()) == ((everything, 2), (everything, 1))
        await bench.records.remove(ids[0])
        del everything[ids[0]]
        assert await listed() == (everything, 1)
        many = [await bench.recorded() for _ in range(9)]
        everything |= dict.fromkeys(many, "")
        assert await listed() == (everything, 2), "all at once"

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
