"""Contract: each operation on a data set ends the same when its process is killed before or after
any call (docs/spec/datasets.md#operations-on-data-sets). Over both API servers, with Fluid's
definitions and without its controllers, so steps that wait for these are left out.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.contracts.api_client import ApiClient
from tests.contracts.operation_bench import Bench, Death, Fault, on_bench

from fairlead.model.actions import Manifest, ObjectRef
from fairlead.model.jobs.acceleration import Acceleration
from fairlead.model.jobs.data_details import Preheat
from fairlead.model.jobs.datasets import DataMount, DataSet
from fairlead.model.operations.data_parts import DataSetParts
from fairlead.model.operations.operation import OperationStep, ReadyStep
from fairlead.rules.data.plans import (
    acceleration_steps,
    fluid_ref_of,
    preheat_steps,
    unacceleration_steps,
)
from fairlead.wire.data.data_load import render_preheat
from fairlead.wire.data.fluid import render_acceleration

Begin = Callable[[Bench], Coroutine[Any, Any, str]]


def manifests(bench: Bench) -> list[Manifest]:
    """A data set and its runtime."""
    return render_acceleration(Acceleration(bench.space, "raw", "raw-acc", "", 1, "MEM", 1 << 30))


def data_load(bench: Bench) -> Manifest:
    """With a schedule, so that no step waits for its end."""
    chosen = Preheat(bench.space, "raw-acc", ("/",), 1, "0 3 * * *")
    data_set = DataSet(bench.space, "raw-acc", (DataMount("pvc://raw"),))
    return render_preheat(chosen, data_set, "raw-acc-load")


def without_waits(steps: tuple[OperationStep, ...]) -> tuple[OperationStep, ...]:
    return tuple(each for each in steps if not isinstance(each.work, ReadyStep))


async def accelerate(bench: Bench) -> str:
    steps, undo = acceleration_steps(manifests(bench), "unused")
    return await bench.recorded(*without_waits(steps), undo=undo)


async def unaccelerate(bench: Bench) -> str:
    refs = []
    for each in manifests(bench):
        made = await bench.cluster.create(each, fluid_ref_of(each).plural)
        target = fluid_ref_of(each)
        refs.append(
            ObjectRef(
                target.api_version,
                target.kind,
                target.name,
                target.namespace,
                made["metadata"]["uid"],
                target.plural,
            )
        )
    data_set, *runtimes = refs
    parts = DataSetParts(bench.space, "raw-acc", data_set, tuple(runtimes))
    return await bench.recorded(*unacceleration_steps(parts))


async def preheat(bench: Bench) -> str:
    steps, undo = preheat_steps(data_load(bench), "unused")
    return await bench.recorded(*without_waits(steps), undo=undo)


class Case(NamedTuple):
    begin: Begin
    left: tuple[str, ...]


CASES = {
    "accelerate": Case(accelerate, ("Dataset", "AlluxioRuntime")),
    "unaccelerate": Case(unaccelerate, ()),
    "preheat": Case(preheat, ("DataLoad",)),
}


async def end(bench: Bench, id: str) -> tuple[str, list[str]]:
    """How it ended, and the kinds of the objects that are left, which are then removed."""
    found = await bench.records.get(id)
    assert found is not None
    left = []
    for each in (*manifests(bench), data_load(bench)):
        target = fluid_ref_of(each)
        made = await bench.cluster.get(target)
        if made is not None:
            left.append(target.kind)
            await bench.cluster.remove(target)
    return found.state.value, left


@pytest.mark.parametrize("name", CASES)
def test_the_end_is_that_of_an_undisturbed_run(
    fluid_world: tuple[ApiClient, Path], name: str
) -> None:
    case = CASES[name]

    async def work(bench: Bench) -> None:
        calls = Fault()
        id = await case.begin(bench)
        await bench.runner(calls).run(id)
        assert await end(bench, id) == ("Succeeded", [*case.left])
        for number in range(1, calls.calls + 1):
            for how in ("before", "after"):
                id = await case.begin(bench)
                with contextlib.suppress(Death):
                    await bench.runner(Fault(number, how)).run(id)
                await bench.runner().resume(id, patience=60.0)
                assert await end(bench, id) == ("Succeeded", [*case.left]), (number, how)

    on_bench(fluid_world[0], work)
