"""Simulated GPUs: memory adds up, counters never decrease, temperature follows load, and an
unhealthy card reports its fault.
"""

from __future__ import annotations

import pytest
from hypothesis import strategies as st
from msgspec import structs
from tests.examples import examples
from tests.sim.small_world import (
    CPU_POOL,
    EPOCH,
    GPU_POOL,
    NodePool,
    get_pod,
    live,
    phase,
    pod,
    small_scenario,
    small_world,
)

from fairlead.model.devices.device import DeviceSample
from fairlead.rules.devices.health_checks import health_checks
from fairlead.run.hooks.sharing_hooks import sharing_world
from fairlead.wire.text.time_span import parse_span
from fairlead_sim.gpus.cards import CARD_MODELS, card_model
from fairlead_sim.gpus.devices import NODES_IN_PART, SimulatedDevices
from fairlead_sim.gpus.readings import read_card
from fairlead_sim.objects.resources import NODES
from fairlead_sim.scenario.file import load_scenario
from fairlead_sim.scenario.scenario import Duration, Xid
from fairlead_sim.time.clock import SimClock
from fairlead_sim.world.world import World

COUNTERS = (
    "TOTAL_ENERGY_CONSUMPTION",
    "POWER_VIOLATION",
    "PCIE_TX_BYTES",
    "PCIE_RX_BYTES",
    "NVLINK_TX_BYTES",
    "NVLINK_RX_BYTES",
)


def value(sample: DeviceSample, name: str) -> int | float:
    return sample.fields[f"DCGM_FI_DEV_{name}"]


def device(world: World, index: int = 0, node: str = "gpu-1") -> DeviceSample:
    return next(item for item in world.devices.sample() if (item.node, item.index) == (node, index))


def test_a_free_card_is_cool_and_slow_and_empty() -> None:
    world = small_world()
    live(world, 600)
    sample = device(world)
    assert value(sample, "GPU_UTIL") == 0
    assert value(sample, "FB_USED") < 10
    assert value(sample, "SM_CLOCK") == 135
    assert value(sample, "POWER_USAGE") == pytest.approx(42.0)
    assert sample.throttle_reasons == 1
    assert sample.processes == ()


def test_in_parts_the_same_is_reported_without_a_node_that_fell_silent_meanwhile() -> None:
    nodes = 2 * NODES_IN_PART + 1
    devices = SimulatedDevices(1, SimClock(EPOCH))
    for number in range(nodes):
        devices.add_node(f"gpu-{number:03d}", card_model("Tesla T4", 16_000), 2, shared=False)
    parts = list(devices.in_parts())
    assert [len(part) for part in parts] == [2 * NODES_IN_PART, 2 * NODES_IN_PART, 2]
    assert [sample for part in parts for sample in part] == list(devices.sample())
    begun = devices.in_parts()
    next(begun)
    devices.set_silent("gpu-080", is_silent=True)
    assert {sample.node for part in begun for sample in part} == {
        f"gpu-{number:03d}" for number in range(NODES_IN_PART, nodes - 1)
    }


def test_a_training_container_warms_the_card_up_with_a_lag() -> None:
    world = small_world()
    live(world, 600)
    cold = value(device(world), "GPU_TEMP")
    world.cluster.create(pod(image="train:30m", gpus=1))
    live(world, 420)
    busy = device(world)
    assert phase(world) == "Running"
    assert value(busy, "GPU_TEMP") > cold + 15
    assert value(busy, "FB_USED") > 0.5 * 16130
    assert value(busy, "SM_CLOCK") >= 1400
    live(world, 1500)
    assert phase(world) == "Succeeded"
    ended = get_pod(world)["status"]["containerStatuses"][0]["state"]["terminated"]
    assert ended["exitCode"] == 0
    assert value(device(world), "GPU_UTIL") == 0
    live(world, 300)
    assert value(device(world), "GPU_TEMP") <= cold + 2


@pytest.mark.parametrize("name", CARD_MODELS)
def test_only_hopper_reports_how_busy_the_parts_of_its_chip_are(name: str) -> None:
    world = small_world(
        CPU_POOL, NodePool(name="gpu", cpu=32, memory="128Gi", gpu_model=name, gpus=1)
    )
    world.cluster.create(pod(image="train:30m", gpus=1))
    live(world, 420)
    profile = {
        field: number
        for field, number in device(world).fields.items()
        if field.startswith("DCGM_FI_PROF_")
    }
    if name != "NVIDIA H200":
        assert profile == {}
    else:
        assert profile["DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"] > 0.1


def test_a_profiling_ratio_is_a_float_and_a_rate_an_int_at_rest_and_at_work() -> None:
    world = small_world(
        CPU_POOL, NodePool(name="gpu", cpu=32, memory="128Gi", gpu_model="NVIDIA H200", gpus=2)
    )
    world.cluster.create(pod(image="train:30m", gpus=1))
    live(world, 420)
    types = [
        {
            field: type(number)
            for field, number in device(world, index).fields.items()
            if "_PROF_" in field
        }
        for index in (0, 1)
    ]
    assert types[0] == types[1]
    assert types[0]["DCGM_FI_PROF_DRAM_ACTIVE"] is float
    assert {kind for field, kind in types[0].items() if field.endswith("_BYTES")} == {int}


@pytest.mark.parametrize(
    ("code", "state"),
    [
        (13, 0),
        (31, 0),
        (43, 0),
        (45, 0),
        (68, 0),
        (109, 0),
        (92, 1),
        (63, 1),
        (154, 1),
        (48, 2),
        (79, 2),
    ],
)
def test_the_xid_check_warns_of_the_cards_own_errors_and_never_of_a_programs(
    code: int, state: int
) -> None:
    world = small_world(
        CPU_POOL, GPU_POOL, xids=(Xid("gpu-1", 0, code, Duration(parse_span("1m"))),)
    )
    live(world, 90)
    assert health_checks(device(world), world.clock.now())["xid"] == state


def test_a_crash_looping_container_holds_its_card_and_uses_nothing() -> None:
    world = small_world()
    world.cluster.create(pod(image="crash:5s", gpus=1, restartPolicy="Always"))
    live(world, 200)
    (process,) = device(world).processes
    assert (process.memory_used_bytes, process.sm_percent, process.processes) == (0, 0, 0)


def test_exclusive_and_shared_limits() -> None:
    world = small_world()
    world.cluster.create(pod("whole", image="train:30m", gpus=1))
    world.cluster.create(pod("part", image="train:30m", gpu_memory=4))
    live(world, 60)
    (whole,), (part,) = device(world).processes, device(world, node="shared-1").processes
    assert (whole.allocate_mode, whole.memory_limit_bytes) == ("exclusive", 16384 << 20)
    assert (part.allocate_mode, part.memory_limit_bytes) == ("share", 4301 << 20)


def test_equal_instants_read_equal_and_reading_changes_nothing() -> None:
    world = small_world()
    world.cluster.create(pod(image="train:30m", gpus=2))
    live(world, 300)
    assert world.devices.sample() == world.devices.sample()
    card = world.devices.cards("gpu-1")[0]
    later = read_card(card, EPOCH + 900)
    read_card(card, EPOCH + 400)
    assert read_card(card, EPOCH + 900) == later


def test_energy_is_the_integral_of_power() -> None:
    world = small_world()
    world.cluster.create(pod(image="train:30m", gpus=1))
    live(world, 60)
    card = world.devices.cards("gpu-1")[0]
    start = world.clock.now()
    summed = sum(card.watts(start + second + 0.5) for second in range(1200))
    energy = (card.totals(start + 1200).energy_mj - card.totals(start).energy_mj) / 1000
    assert energy == pytest.approx(summed, rel=0.002)


def test_an_unhealthy_card_leaves_allocatable_and_reports_its_xids() -> None:
    xids = tuple(
        Xid("gpu-1", 3, code, Duration(parse_span(at)))
        for code, at in ((63, "1m"), (48, "2m"), (79, "3m"))
    )
    world = small_world(CPU_POOL, GPU_POOL, xids=xids)
    live(world, 90)
    assert device(world, 3).healthy, "63 alone is a warning"
    assert [event.xid for event in device(world, 3).xids] == [63]
    live(world, 60)
    assert not device(world, 3).healthy
    assert device(world, 3).up
    live(world, 60)
    lost = device(world, 3)
    assert (lost.up, lost.fields, [event.xid for event in lost.xids]) == (False, {}, [48, 63, 79])
    assert lost.xids[2].last_at == EPOCH + 180
    node = world.cluster.get(NODES, None, "gpu-1")
    assert node is not None
    assert node["status"]["capacity"]["nvidia.com/gpu"] == "4"
    assert node["status"]["allocatable"]["nvidia.com/gpu"] == "3"
    assert '"reason":"XID 79"' in node["metadata"]["annotations"]["fairlead.io/gpus"]
    world.cluster.create(pod(gpus=4))
    live(world, 30)
    assert phase(world) == "Pending"


def test_a_program_dies_with_its_card_and_finds_it_broken_when_it_comes_back() -> None:
    xids = (
        Xid("gpu-1", 0, 63, Duration(parse_span("2m"))),
        Xid("gpu-1", 0, 79, Duration(parse_span("4m"))),
    )
    world = small_world(CPU_POOL, GPU_POOL, xids=xids)
    world.cluster.create(pod(image="train:1h", gpus=1, restartPolicy="OnFailure"))
    live(world, 5)
    world.cluster.create(pod("neighbour", image="train:1h", gpus=1))
    live(world, 230)
    assert get_pod(world)["status"]["containerStatuses"][0]["restartCount"] == 0, (
        "63 ends no container"
    )
    live(world, 60)
    status = get_pod(world)["status"]["containerStatuses"][0]
    assert status["restartCount"] >= 1
    assert status["lastState"]["terminated"]["exitCode"] in (134, 1)
    assert phase(world, "neighbour") == "Running"
    assert get_pod(world, "neighbour")["status"]["containerStatuses"][0]["restartCount"] == 0


def test_a_shared_node_offers_memory_and_counts() -> None:
    world = small_world(
        NodePool(name="shared", gpu_model="Tesla V100-SXM2-16GB", gpus=2, shared=True)
    )
    node = world.cluster.get(NODES, None, "shared-1")
    assert node is not None
    assert {
        name: node["status"]["capacity"][name]
        for name in ("aliyun.com/gpu-count", "aliyun.com/gpu-mem")
    } == {
        "aliyun.com/gpu-count": "2",
        "aliyun.com/gpu-mem": "30",
    }
    assert node["metadata"]["labels"]["cgpu"] == "true"
    assert "nvidia.com/gpu" not in node["status"]["capacity"]


@examples(2, 12, st.integers(0, 10_000), st.lists(st.integers(1, 900), min_size=3, max_size=12))
def test_over_any_history_memory_adds_up_and_counters_never_fall(
    seed: int, steps: list[int]
) -> None:
    world = sharing_world(load_scenario("default"), seed, EPOCH)
    before: dict[tuple[str, str], int | float] = {}
    for step in steps:
        live(world, step)
        for sample in world.devices.sample():
            if not sample.up:
                continue
            used = value(sample, "FB_USED")
            assert sum(process.memory_used_bytes for process in sample.processes) <= used << 20
            assert all(
                process.memory_used_bytes <= process.memory_limit_bytes
                for process in sample.processes
            )
            assert used + value(sample, "FB_FREE") + value(sample, "FB_RESERVED") == value(
                sample, "FB_TOTAL"
            )
            assert value(sample, "FB_FREE") >= 0
            assert 0 <= value(sample, "GPU_UTIL") <= 100
            assert value(sample, "POWER_USAGE") <= (sample.power_limit_watts or 0)
            for name in COUNTERS:
                now = sample.fields.get(f"DCGM_FI_DEV_{name}", 0)
                assert now >= before.get((sample.uuid, name), 0)
                before[sample.uuid, name] = now


def test_the_uuids_of_a_node_do_not_depend_on_the_other_nodes() -> None:
    alone = small_world(GPU_POOL)
    among = sharing_world(
        small_scenario(CPU_POOL, NodePool(name="more", gpus=8, gpu_model="Tesla T4"), GPU_POOL),
        1,
        EPOCH,
    )
    assert [card.uuid for card in alone.devices.cards("gpu-1")] == [
        card.uuid for card in among.devices.cards("gpu-1")
    ]


def test_a_brief_sample_has_the_same_values_for_what_it_contains() -> None:
    world = World(load_scenario("default"), 3, EPOCH)
    world.warm_up()
    for whole, brief in zip(
        world.devices.sample(), world.devices.sample(is_brief=True), strict=True
    ):
        assert brief.fields.items() <= whole.fields.items()
        assert whole.up is (
            {"DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_GPU_TEMP"}
            <= brief.fields.keys()
        )
        assert (
            structs.replace(
                brief, fields=whole.fields, collectors=whole.collectors, peers=whole.peers
            )
            == whole
        )
