"""Scenario `telemetry` on the exporter's page. The oracles are its own lines and
docs/spec/telemetry.md#device-metrics, docs/spec/telemetry.md#sampling-and-fault-isolation,
docs/spec/telemetry.md#metrics-of-the-exporter-itself.
"""

from __future__ import annotations

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.sim.small_world import EPOCH

from fairlead.apps.gpu_exporter import GpuExporter, GpuExporterSettings
from fairlead.model.devices.gpu import GpuMode
from fairlead.run.hooks.sharing_hooks import sharing_world
from fairlead.wire.metrics.gpu_readings import parse_readings
from fairlead.wire.metrics.prom_text import parse_page
from fairlead_sim.gpus.sampled import SampledDevices
from fairlead_sim.objects.resources import PODS
from fairlead_sim.scenario.file import load_scenario
from fairlead_sim.world.snapshot import take_snapshot
from fairlead_sim.world.world import World

LIMITS = "fairlead_container_gpu_memory_limit_bytes"
Labels = tuple[tuple[str, str], ...]
GIB = 2**30


class Page:
    """The page that the exporter of the whole cluster prints of a world now."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._devices = SampledDevices(
            world.devices.in_parts, world.clock.now, 5.0, world.devices.stuck_calls
        )
        self._exporter = GpuExporter(self._devices, world.clock, GpuExporterSettings())
        self._values: dict[str, dict[Labels, float]] = {}
        self.text = b""

    async def read(self) -> None:
        await self._devices.sample_once()
        await self._exporter.refresh()
        self.text = b"".join(self._exporter.page.pieces)
        self._values = {}
        for family in text_string_to_metric_families(self.text.decode()):
            for sample in family.samples:
                self._values.setdefault(sample.name, {})[tuple(sorted(sample.labels.items()))] = (
                    sample.value
                )

    def of(self, name: str, **labels: str) -> list[float]:
        wanted = set(labels.items())
        return [value for key, value in self._values.get(name, {}).items() if wanted <= set(key)]

    def one(self, name: str, **labels: str) -> float:
        (value,) = self.of(name, **labels)
        return value


@pytest.fixture(scope="module")
def world() -> World:
    world = sharing_world(load_scenario("telemetry"), 0, EPOCH)
    world.run_until(EPOCH + 51 * 60)
    return world


@pytest.fixture
async def page(world: World) -> Page:
    page = Page(world)
    await page.read()
    return page


async def test_every_card_is_listed_and_the_lost_and_the_hung_one_are_down(page: Page) -> None:
    down = {("t4-2", "1"), ("t4-1", "1")}
    nodes = {"hopper-1": 4, "t4-1": 2, "t4-2": 2, "a10-1": 2, "mig-1": 2}
    cards = [(node, str(gpu)) for node, count in nodes.items() for gpu in range(count)]
    for node, gpu in cards:
        assert page.one("fairlead_gpu_up", node_name=node, gpu=gpu) == ((node, gpu) not in down), (
            node,
            gpu,
        )
    assert len(page.of("fairlead_gpu_up")) == len(cards)
    assert page.one("fairlead_exporter_stuck_calls") == 1
    assert set(page.of("fairlead_exporter_nvml_up")) == {1}, (
        "the drivers answer, on the node of the lost card too"
    )


async def test_a_hung_card_has_its_name_and_age_and_no_value_of_before(page: Page) -> None:
    mine = {"node_name": "t4-1", "gpu": "1"}
    assert len(page.of("fairlead_gpu_info", **mine)) == 1
    assert page.one("fairlead_exporter_sample_age_seconds", **mine) == 60
    assert page.one("fairlead_exporter_collector_success", collector="device", **mine) == 0
    assert (
        page.one(
            "fairlead_exporter_collector_errors_total", collector="device", error="timeout", **mine
        )
        == 1
    )
    for gone in (
        "utilization_ratio",
        "memory_used_bytes",
        "temperature_celsius",
        "memory_unattributed_bytes",
    ):
        assert page.of(f"fairlead_gpu_{gone}", **mine) == []
        assert len(page.of(f"fairlead_gpu_{gone}", node_name="t4-1", gpu="0")) == 1
    assert page.of("DCGM_FI_DEV_GPU_UTIL", Hostname="t4-1", gpu="1") == []


async def test_the_holder_of_a_hung_card_is_listed_without_what_it_uses(page: Page) -> None:
    mine = {"node_name": "t4-1", "gpu": "1"}
    assert page.one("fairlead_container_gpu_memory_limit_bytes", **mine) == 15360 * 2**20
    for unknown in ("memory_used_bytes", "utilization_ratio", "processes"):
        assert page.of(f"fairlead_container_gpu_{unknown}", **mine) == []
        assert len(page.of(f"fairlead_container_gpu_{unknown}", node_name="t4-1", gpu="0")) == 1


async def test_the_application_s_xid_leaves_the_card_healthy_and_the_lost_one_fails(
    page: Page,
) -> None:
    assert page.one("fairlead_gpu_xid_errors_total", node_name="hopper-1", gpu="1", xid="31") == 1
    assert page.one("fairlead_gpu_healthy", node_name="hopper-1", gpu="1") == 1
    assert page.one("fairlead_gpu_healthy", node_name="t4-2", gpu="1") == 0
    assert page.one("fairlead_gpu_health_check", node_name="t4-2", gpu="1", check="lost") == 2


async def test_profiling_is_hopper_s_alone(page: Page) -> None:
    assert sorted(page._values["DCGM_FI_PROF_GR_ENGINE_ACTIVE"]) != []
    reported = {
        dict(key)["Hostname"]
        for name, rows in page._values.items()
        if name.startswith("DCGM_FI_PROF_")
        for key in rows
    }
    assert reported == {"hopper-1", "mig-1"}
    assert page.of("DCGM_FI_PROF_PCIE_TX_BYTES", Hostname="mig-1") == [], (
        "of a divided card only its instances are measured"
    )
    assert page.of("fairlead_gpu_temperature_celsius", node_name="t4-1", sensor="memory") == []
    assert (
        len(page.of("fairlead_gpu_temperature_celsius", node_name="hopper-1", sensor="memory")) == 4
    )


async def test_a_process_without_a_pod_is_foreign_and_takes_the_card_from_no_pod(
    page: Page, world: World
) -> None:
    mine = {"node_name": "hopper-1", "gpu": "3"}
    assert page.one("fairlead_gpu_foreign_processes", **mine) == 1
    assert page.one("fairlead_gpu_memory_foreign_bytes", **mine) == 20 * GIB
    assert page.one("fairlead_gpu_allocated_ratio", **mine) == 0
    assert page.of("fairlead_container_gpu_memory_used_bytes", **mine) == []
    assert page.one("fairlead_gpu_utilization_ratio", **mine) > 0
    assert page.one("fairlead_gpu_foreign_processes", node_name="a10-1", gpu="0") == 0, (
        "it has gone"
    )
    (reading,) = [
        each for each in take_snapshot(world).gpus if (each.node, each.index) == ("hopper-1", 3)
    ]
    assert reading.holders == ()
    assert all(
        each["status"]["phase"] == "Running"
        for each in world.cluster.list(PODS)
        if each["metadata"]["namespace"] == "lab"
    )


async def test_containers_and_strangers_never_have_more_than_the_card(page: Page) -> None:
    for key, used in page._values["fairlead_gpu_memory_used_bytes"].items():
        card = {name: value for name, value in key if name in ("node_name", "gpu")}
        part = {name: value for name, value in key if name == "mig_gi_id"}
        assert used <= page.one("fairlead_gpu_memory_total_bytes", **card, **part)
        held = sum(page.of("fairlead_container_gpu_memory_used_bytes", **card))
        rest = page.one("fairlead_gpu_memory_foreign_bytes", **card) + page.one(
            "fairlead_gpu_memory_unattributed_bytes", **card
        )
        assert held + rest == (
            sum(page.of("fairlead_gpu_memory_used_bytes", **card)) if part else used
        )


async def test_a_divided_card_s_power_counts_once_and_each_instance_has_its_holder(
    page: Page, world: World
) -> None:
    boards = [card.watts(world.clock.now()) for card in world.devices.cards("mig-1")]
    assert sum(page.of("DCGM_FI_DEV_POWER_USAGE", Hostname="mig-1")) == pytest.approx(
        sum(boards), abs=0.01
    )
    assert sum(page.of("fairlead_gpu_power_watts", node_name="mig-1")) == pytest.approx(
        sum(boards), abs=0.01
    )
    assert page.of("DCGM_FI_DEV_GPU_UTIL", Hostname="mig-1") == [], "the driver does not measure it"
    holders = [dict(key) for key in page._values[LIMITS]]
    held = sorted(
        (each["mig_profile"], each["pod_name"].split("-")[0])
        for each in holders
        if "mig_gi_id" in each
    )
    assert held == [("1g.18gb", "small")] * 3 + [("2g.35gb", "forgotten"), ("3g.71gb", "half")]
    given = [
        page.one("fairlead_gpu_allocated_ratio", node_name="mig-1", gpu="1", mig_gi_id=instance)
        for instance in "1378"
    ]
    assert given == [0, 0, 1, 0]
    (forgotten,) = page.of(
        "fairlead_gpu_utilization_ratio", node_name="mig-1", gpu="0", mig_profile="2g.35gb"
    )
    assert (
        forgotten,
        page.one("fairlead_gpu_allocated_ratio", node_name="mig-1", gpu="0", mig_gi_id="3"),
    ) == (0, 1)


async def test_the_snapshot_and_the_page_agree_on_instances(page: Page, world: World) -> None:
    taken = {each.index: each for each in take_snapshot(world).gpus if each.node == "mig-1"}
    reported = {
        each.index: each
        for each in parse_readings(parse_page(page.text.decode()).samples, world.clock.now())
        if each.node == "mig-1"
    }
    assert [
        [(each.id, each.profile) for each in reported[index].instances] for index in (0, 1)
    ] == [[(1, "3g.71gb"), (3, "2g.35gb"), (7, "1g.18gb"), (8, "1g.18gb")]] * 2
    for index, reading in reported.items():
        assert (reading.instances, reading.memory_used_mib) == (
            taken[index].instances,
            taken[index].memory_used_mib,
        )
        assert reading.utilization_ratio == taken[index].utilization_ratio


def test_a_process_without_a_grant_has_its_card_in_no_mode(world: World) -> None:
    found = {
        process.allocate_mode
        for part in world.devices.in_parts()
        for each in part
        for process in each.processes
        if not process.pod
    }
    assert found == {GpuMode.NONE}


async def test_a_call_that_hung_and_returned_leaves_nothing_behind() -> None:
    world = sharing_world(load_scenario("telemetry"), 0, EPOCH)
    page = Page(world)
    mine = {"node_name": "hopper-1", "gpu": "2"}
    for minutes, is_up in ((19, 1), (21, 0), (26, 1)):
        world.run_until(EPOCH + minutes * 60)
        await page.read()
        assert page.one("fairlead_gpu_up", **mine) == is_up, minutes
        assert len(page.of("fairlead_gpu_utilization_ratio", **mine)) == is_up
        assert page.one("fairlead_exporter_stuck_calls") == 1 - is_up
        assert page.one("fairlead_gpu_foreign_processes", node_name="a10-1", gpu="0") == 1
