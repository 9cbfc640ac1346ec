"""Both exporters' pages of a simulated world at one moment, without a process: of a scenario, and
of document 001 step by step.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from tests.apps.fakes import FakeCluster, FakeDevices, FakeReadings

from fairlead.apps.cluster_exporter import ClusterExporter, ClusterExporterSettings
from fairlead.apps.gpu_exporter import GpuExporter, GpuExporterSettings
from fairlead.rules.metrics.over_grant import over_grant_families
from fairlead.run.hooks.sharing_hooks import sharing_world
from fairlead.wire.metrics.gpu_readings import parse_readings
from fairlead.wire.metrics.prom_text import parse_page
from fairlead_sim.objects.resources import NODES
from fairlead_sim.scenario.file import load_scenario
from fairlead_sim.world.snapshot import WorldReader, take_snapshot
from fairlead_sim.world.world import World

MANIFESTS = Path(__file__).resolve().parents[2] / "examples"
EPOCH = 1_767_600_000.0


class Pages(NamedTuple):
    """What a scrape of either exporter answers."""

    gpu: str
    cluster: str


def world_of(scenario: str) -> World:
    world = sharing_world(load_scenario(scenario), 0, EPOCH)
    world.warm_up()
    return world


def pages_of(world: World) -> Pages:
    return asyncio.run(_pages_of(world))


async def _pages_of(world: World) -> Pages:
    now = world.clock.now()
    devices = GpuExporter(
        FakeDevices(world.devices.sample(), now),
        world.clock,
        GpuExporterSettings(node="host"),
        agents=over_grant_families,
    )
    await devices.refresh()
    gpu = b"".join(devices.page.pieces).decode()
    readings = FakeReadings(parse_readings(parse_page(gpu).samples, now))
    snapshot = take_snapshot(world, WorldReader(world.cluster))
    cluster = ClusterExporter(
        FakeCluster(snapshot), readings, world.clock, ClusterExporterSettings(node="host")
    )
    await cluster.refresh()
    return Pages(gpu, b"".join(cluster.page.pieces).decode())


def document_001() -> tuple[Pages, Pages, Pages]:
    """Its one card is held whole by the app of 3 GB; then shared by two such apps, and by one that
    requests more than its grant; and a quarter of an hour later.
    """
    world = world_of("documents-001")
    _create(world, "app-3g-v1.yaml", 90)
    whole = pages_of(world)
    workloads = world.cluster.served("apps/v1", "StatefulSet")
    assert workloads is not None
    world.cluster.delete(workloads, "default", "app-3g-v1")
    world.run_until(world.clock.now() + 40)
    (node,) = {sample.node for sample in world.devices.sample()}
    world.cluster.merge_patch(NODES, None, node, {"metadata": {"labels": {"cgpu": "true"}}})
    _create(world, "app-3g-v1-shared.yaml", 60)
    _create(world, "app-6g-v1.yaml", 195)
    shared = pages_of(world)
    world.run_until(world.clock.now() + 900)
    return whole, shared, pages_of(world)


def _create(world: World, manifest: str, seconds: float) -> None:
    obj: dict[str, Any] = yaml.safe_load((MANIFESTS / manifest).read_text(encoding="utf-8"))
    obj["metadata"].setdefault("namespace", "default")
    world.cluster.create(obj)
    world.run_until(world.clock.now() + seconds)
