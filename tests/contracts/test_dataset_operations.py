"""Contract: the operations on data sets, in a process that dies at every call, over both API
servers with Fluid's own definitions (docs/spec/datasets.md#operations-on-data-sets).

Whenever the process waits, the test does what Fluid's controllers do.
"""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Any

import pytest
from tests.contracts.api_client import ApiClient
from tests.contracts.conftest import new_space
from tests.contracts.data_objects import DataSpace, claim
from tests.contracts.operation_bench import Bench, Death, Fault, PlayedClock, deaths
from tests.turns import in_turn

from fairlead.edge.connection.kubeconfig import find_connection
from fairlead.edge.kube.kube_api import KubeApi
from fairlead.errors import OutsideError
from fairlead.model.jobs.acceleration import Acceleration
from fairlead.model.jobs.data_details import Preheat
from fairlead.model.jobs.datasets import DataMount, DataSet
from fairlead.model.operations.data_parts import DataSetParts, fluid_ref
from fairlead.model.operations.operation import OperationKind
from fairlead.rules.data.plans import (
    acceleration_steps,
    data_set_subject,
    preheat_steps,
    unacceleration_steps,
)
from fairlead.rules.data.preheat import load_name
from fairlead.rules.operations.progress import begun, planned
from fairlead.wire.data.data_load import render_preheat
from fairlead.wire.data.fluid import render_acceleration

NAME = "raw-acc"
MARK = "fairlead.io/operation"
HOWS = ("before", "after")
PLURALS = ("datasets", "alluxioruntimes", "dataloads")


class Fluid(PlayedClock):
    """A clock: while a process sleeps, a data set with a runtime becomes Bound and gets its claim,
    a DataLoad becomes Complete, and the claim goes with its data set.
    """

    def __init__(self, space: DataSpace) -> None:
        super().__init__()
        self._space = space

    async def sleep(self, seconds: float) -> None:
        await super().sleep(seconds)
        self.react()

    def react(self) -> None:
        space = self._space
        found = {plural: self.objects(plural) for plural in PLURALS}
        claims = f"{space.core}/persistentvolumeclaims"
        has_claim = space.api.get(f"{claims}/{NAME}").status == 200
        if found["datasets"] and found["alluxioruntimes"]:
            if found["datasets"][0].get("status", {}).get("phase") != "Bound":
                space.status("Dataset", NAME, {"phase": "Bound", "conditions": []})
            if not has_claim:
                space.create(claims, claim(NAME, CreatedBy="fluid"))
        if not found["datasets"] and has_claim:
            space.api.patch(
                f"{claims}/{NAME}",
                {"metadata": {"finalizers": None}},
                "application/merge-patch+json",
            )
            space.api.delete(f"{claims}/{NAME}")
        for each in found["dataloads"]:
            if each.get("status", {}).get("phase") != "Complete":
                ended = {"phase": "Complete", "duration": "1s", "conditions": []}
                space.status("DataLoad", each["metadata"]["name"], ended)

    def objects(self, plural: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._space.api.get(f"{self._space.fluid}/{plural}").body[
            "items"
        ]
        return found


class DataBench(Bench):
    """Operations on one data set in one namespace."""

    def __init__(self, api: KubeApi, space: DataSpace) -> None:
        super().__init__(api, space.space)
        self.data = space
        self.fluid = Fluid(space)
        self.clock = self.fluid
        self._numbers = iter(range(100000, 999999))

    async def begin(self, kind: OperationKind, id: str) -> str:
        # of its own: a process that dies at its end leaves the Lease of its subject
        subject = data_set_subject(self.space, id)
        if kind is OperationKind.ACCELERATE:
            steps, undo = acceleration_steps(self._manifests(), id)
        elif kind is OperationKind.PREHEAT:
            data_set = DataSet(self.space, NAME, (DataMount("pvc://raw"),))
            chosen = Preheat(self.space, NAME)
            steps, undo = preheat_steps(render_preheat(chosen, data_set, load_name(NAME, id)), id)
        else:
            kinds = ("Dataset", "AlluxioRuntime")
            data_set, runtime = (fluid_ref(each, self.space, NAME) for each in kinds)
            steps, undo = (
                unacceleration_steps(DataSetParts(self.space, NAME, data_set, (runtime,))),
                (),
            )
        plan = planned(id, kind, subject, steps, undo=undo, now=self.clock.now())
        await self.records.create(begun(plan, "", self.clock.now()))
        return id

    def _manifests(self) -> list[dict[str, Any]]:
        return render_acceleration(Acceleration(self.space, "raw", NAME, quota=1 << 30))

    def next_id(self) -> str:
        return f"op{next(self._numbers)}"

    def make(self, *kinds: str) -> None:
        for each in self._manifests():
            if each["kind"] in kinds:
                self.data.create(f"{self.data.fluid}/{each['kind'].lower()}s", each)

    async def end(self, id: str) -> Any:
        """How the operation ended, and which objects there are, marked as its own or not."""
        found = await self.records.get(id)
        assert found is not None
        objects = {}
        for plural in PLURALS:
            for each in self.fluid.objects(plural):
                name = each["metadata"]["name"].replace(id, "ID")
                mark = (each["metadata"].get("annotations") or {}).get(MARK)
                phase = each.get("status", {}).get("phase", "")
                objects[f"{plural}/{name}"] = (mark == id, phase)
                self.data.api.delete(f"{self.data.fluid}/{plural}/{each['metadata']['name']}")
        self.fluid.react()
        return found.state.value, objects


CASES = [
    (
        OperationKind.ACCELERATE,
        (),
        (
            "Succeeded",
            {"datasets/raw-acc": (True, "Bound"), "alluxioruntimes/raw-acc": (True, "")},
        ),
    ),
    (
        OperationKind.ACCELERATE,
        ("AlluxioRuntime",),
        ("Failed", {"alluxioruntimes/raw-acc": (False, "")}),
    ),
    (
        OperationKind.PREHEAT,
        ("Dataset", "AlluxioRuntime"),
        (
            "Succeeded",
            {
                "datasets/raw-acc": (False, "Bound"),
                "alluxioruntimes/raw-acc": (False, ""),
                "dataloads/raw-acc-ID": (True, "Complete"),
            },
        ),
    ),
    (OperationKind.UNACCELERATE, ("Dataset", "AlluxioRuntime"), ("Succeeded", {})),
]


@pytest.mark.parametrize(
    ("kind", "before", "expected"), CASES, ids=["made", "refused", "preheated", "removed"]
)
def test_a_process_may_die_at_every_call_of_an_operation_on_a_data_set(
    fluid_world: tuple[ApiClient, Path],
    kind: OperationKind,
    before: tuple[str, ...],
    expected: Any,
) -> None:
    """Before or after each call: the end is that of an undisturbed run, object for object.

    A run tries a third of the deaths.
    """
    api, kubeconfig = fluid_world

    async def work(bench: DataBench) -> None:
        calls = Fault()
        bench.make(*before)
        id = await bench.begin(kind, bench.next_id())
        await bench.runner(calls).run(id)
        assert await bench.end(id) == expected
        for number, how in in_turn(deaths(api, calls.calls, HOWS), 3):
            bench.make(*before)
            id = await bench.begin(kind, bench.next_id())
            with contextlib.suppress(Death, OutsideError):
                await bench.runner(Fault(number, how)).run(id)
            await bench.runner().resume(id, patience=60.0)
            assert await bench.end(id) == expected, (number, how)

    async def run() -> None:
        connection = find_connection(str(kubeconfig), None, env={})
        assert connection is not None
        async with KubeApi(connection) as kube:
            await work(DataBench(kube, DataSpace(api, kubeconfig, new_space(api))))

    asyncio.run(run())
