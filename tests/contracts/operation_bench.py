"""Operations on ConfigMaps of one namespace, and faults at every call of their runner."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from tests.contracts.api_client import ApiClient
from tests.contracts.conftest import new_space

from fairlead.apps.leader import LeaseTimes
from fairlead.apps.operations.runner import OPERATION_LEASE_TIMES, OperationRunner
from fairlead.edge.connection.kubeconfig import find_connection
from fairlead.edge.kube.kube_api import KubeApi
from fairlead.edge.operations.objects import KubeOperationCluster
from fairlead.edge.operations.records import KubeOperationRecords
from fairlead.errors import OutsideError
from fairlead.model.actions import ObjectRef
from fairlead.model.operations.operation import (
    ApplyStep,
    CreateStep,
    GoneStep,
    OperationKind,
    OperationStep,
    ReadyStep,
    RemoveStep,
)
from fairlead.rules.components.several import after
from fairlead.rules.operations.progress import begun, planned

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


def deaths(api: ApiClient, calls: int, hows: Sequence[str]) -> list[tuple[int, str]]:
    """The calls at which a process dies, counted from 1, each with how.

    At a real server, which takes longer, each call has one of the ways.
    """
    return [
        (number, how)
        for number in range(1, calls + 1)
        for how in (hows if api.name == "simulated" else (hows[number % len(hows)],))
    ]


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
        self.api = api
        self.records = KubeOperationRecords(api, space)
        self.cluster = KubeOperationCluster(api)
        self.clock = PlayedClock()

    def runner(
        self, fault: Fault | None = None, times: LeaseTimes = OPERATION_LEASE_TIMES
    ) -> OperationRunner:
        found = fault or Fault()
        return OperationRunner(
            Faulty(self.records, found),
            Faulty(self.cluster, found),
            None,
            f"process-{next(_ids)}",
            now=self.clock.now,
            monotonic=self.clock.now,
            sleep=self.clock.sleep,
            times=times,
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

    async def chain(self) -> tuple[str, str]:
        """Two plans; the last one, which has begun, follows the first."""
        first = planned(
            f"test{next(_ids)}",
            OperationKind.DEPLOY,
            f"component/first-{self.space}",
            (OperationStep("create", CreateStep(self.config_map("created", a="1"))),),
            now=self.clock.now(),
        )
        steps = (
            after(first.id, first.subject),
            OperationStep("apply", ApplyStep(self.config_map("applied", b="2"))),
        )
        last = planned(
            f"test{next(_ids)}",
            OperationKind.DEPLOY,
            f"component/last-{self.space}",
            steps,
            now=self.clock.now(),
        )
        await self.records.create(first)
        await self.records.create(begun(last, "", self.clock.now()))
        return first.id, last.id

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
