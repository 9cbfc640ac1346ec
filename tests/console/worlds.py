"""A world that does not change until a test changes it: the console's ports, filled from one
snapshot.
"""

from __future__ import annotations

import asyncio

import msgspec
from tests.console.clusters import EPOCH, telemetry

from fairlead.model.devices.gpu import GpuReading
from fairlead.model.jobs.serving import ServingObjects, ServingWorkload
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.model.source import Source
from fairlead.ports import Ports, Series


class StillClock:
    def __init__(self, at: float = EPOCH, speed: float = 1.0) -> None:
        self.at = at
        self.speed = speed

    def now(self) -> float:
        return self.at


class StillCluster:
    """`ports.Cluster` whose snapshot a test replaces with `show`."""

    def __init__(self, snapshot: ClusterSnapshot, is_ready: bool = True) -> None:
        self._snapshot = snapshot
        self.is_ready = is_ready

    def show(self, snapshot: ClusterSnapshot) -> None:
        self._snapshot = msgspec.structs.replace(snapshot, version=self._snapshot.version + 1)

    async def run(self) -> None:
        await asyncio.Event().wait()

    @property
    def version(self) -> int:
        return self._snapshot.version

    def snapshot(self) -> ClusterSnapshot:
        return self._snapshot

    async def wait_changed(self, since: int, seconds: float) -> int:
        return self.version


class StillReadings:
    def __init__(self, gpus: tuple[GpuReading, ...] = (), source: Source | None = None) -> None:
        self.gpus = gpus
        self._source = source or telemetry()

    async def run(self) -> None:
        await asyncio.Event().wait()

    def latest(self) -> tuple[GpuReading, ...]:
        return self.gpus

    def source(self) -> Source:
        return self._source

    def tally(self) -> None:
        return


class StillServings:
    """`ports.ServingQuestions` with one job that has no pod yet."""

    async def read(self) -> ServingObjects:
        labels = {"servingType": "custom-serving", "servingName": "bert", "servingVersion": "v1"}
        return ServingObjects(
            (ServingWorkload("Deployment", "team-a", "bert-v1-custom-serving", labels=labels),)
        )


def still_world(
    snapshot: ClusterSnapshot,
    *,
    is_ready: bool = True,
    source: Source | None = None,
    series: Series | None = None,
    speed: float = 1.0,
) -> Ports:
    """A world with this snapshot and the readings in it."""
    return Ports(
        cluster=StillCluster(snapshot, is_ready),
        gpus=StillReadings(snapshot.gpus, source),
        clock=StillClock(speed=speed),
        series=series,
        name="test-cluster",
        servings=StillServings(),
    )
