"""The images of the five documents do what the documents show: the GPUs' numbers over simulated
time are compared, not only the lists of jobs.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from tests.cli.submitting import KeepingCluster, submit
from tests.documents.document_commands import COMMANDS, EXAMPLES
from tests.sim.small_world import CPU_POOL, EPOCH, live, small_world

from fairlead.model.devices.device import DeviceSample
from fairlead.run.hooks.sharing_hooks import sharing_world
from fairlead_sim.objects.resources import MPI_JOBS, NODES, PODS
from fairlead_sim.scenario.file import load_scenario
from fairlead_sim.scenario.scenario import NodePool
from fairlead_sim.world.world import World

Object = dict[str, Any]
Series = list[float]
DOCUMENT_002 = (EXAMPLES / "dcgmproftester.yaml").read_text(encoding="utf-8")
H200 = NodePool(name="gpu", cpu=32, memory="128Gi", gpu_model="NVIDIA H200", gpus=1)


def world_of(document: str) -> World:
    world = sharing_world(load_scenario(f"documents-{document}"), 0, EPOCH)
    world.warm_up()
    return world


def manifests(name: str) -> list[Object]:
    return [obj for obj in yaml.safe_load_all((EXAMPLES / name).read_text(encoding="utf-8")) if obj]


def busy_card(world: World) -> DeviceSample:
    """The one card that is held."""
    (held,) = (sample for sample in world.devices.sample() if sample.processes)
    return held


def watch(world: World, seconds: float, *fields: str) -> dict[str, Series]:
    """The fields of the held card, every five seconds, as the exporter samples."""
    seen: dict[str, Series] = {field: [] for field in fields}
    for _ in range(int(seconds / 5)):
        live(world, 5)
        for field in fields:
            seen[field].append(float(busy_card(world).fields[f"DCGM_FI_{field}"]))
    return seen


def until(world: World, holds: Callable[[], bool], within: float) -> None:
    end = world.clock.now() + within
    while not holds():
        assert world.clock.now() < end, f"not within {within} s"
        live(world, 1)


def state(world: World, name: str) -> str:
    found = world.cluster.get(PODS, "default", name)
    return str(found["status"].get("phase")) if found else "gone"


def test_the_mpijob_of_document_000_moves_its_gpu_and_ends() -> None:
    world = world_of("000")
    line = next(
        each["line"] for each in COMMANDS if each["line"].lstrip().startswith("arena submit mpijob")
    )
    cluster = KeepingCluster(user="alice")
    submit(line.replace("\\\n", " ").strip().removeprefix("arena submit "), cluster)
    (job,) = cluster.created
    world.cluster.create(job)
    until(world, lambda: state(world, "mpi-test-worker-0") == "Running", 120)
    live(world, 240)
    seen = watch(world, 300, "DEV_GPU_UTIL", "DEV_FB_USED", "DEV_POWER_USAGE", "DEV_GPU_TEMP")
    assert max(seen["DEV_GPU_UTIL"]) > 75
    assert len(set(seen["DEV_GPU_UTIL"])) > 5, "it moves"
    assert min(seen["DEV_FB_USED"]) > 4096
    assert max(seen["DEV_POWER_USAGE"]) > 200, "a V100 at work takes most of its 300 W"
    assert max(seen["DEV_GPU_TEMP"]) > 50

    def conditions() -> dict[str, str]:
        found = world.cluster.get(MPI_JOBS, "default", "mpi-test")
        assert found is not None
        return {each["type"]: each["status"] for each in found["status"]["conditions"]}

    until(world, lambda: conditions().get("Succeeded") == "True", 3600)
    live(world, 60)
    assert not [
        sample
        for sample in world.devices.sample()
        if sample.processes or float(sample.fields["DCGM_FI_DEV_GPU_UTIL"])
    ]


def started_tester(world: World, **changes: Any) -> None:
    pod = yaml.safe_load(DOCUMENT_002)
    pod["metadata"]["namespace"] = "default"
    pod["spec"]["containers"][0].update(changes)
    world.cluster.create(pod)
    until(world, lambda: state(world, "dcgmproftester") == "Running", 120)


def test_dcgmproftester_works_the_t4_of_document_002_for_its_two_minutes() -> None:
    world = world_of("002")
    started_tester(world)
    live(world, 5)
    seen = watch(world, 100, "DEV_GPU_UTIL", "DEV_POWER_USAGE", "DEV_FB_USED")
    assert min(seen["DEV_GPU_UTIL"]) >= 96 and max(seen["DEV_GPU_UTIL"]) >= 98, (
        "the document: a peak of 98 %"
    )
    assert min(seen["DEV_POWER_USAGE"]) > 60, "of 70 W"
    assert min(seen["DEV_FB_USED"]) > 384, "three matrices of 128 MiB"
    assert state(world, "dcgmproftester") == "Running"
    live(world, 20)
    assert state(world, "dcgmproftester") == "Succeeded"


def test_it_drives_the_tensor_cores_of_a_card_that_reports_them() -> None:
    """87 % in document 002, which reads it on a T4 in another way than NVML; here NVML reports it
    for a card that supports it.
    """
    world = small_world(CPU_POOL, H200)
    started_tester(world)
    live(world, 5)
    seen = watch(world, 100, "PROF_PIPE_TENSOR_ACTIVE", "PROF_GR_ENGINE_ACTIVE", "PROF_DRAM_ACTIVE")
    assert (
        min(seen["PROF_PIPE_TENSOR_ACTIVE"]) > 0.84 and max(seen["PROF_PIPE_TENSOR_ACTIVE"]) < 0.90
    )
    assert min(seen["PROF_GR_ENGINE_ACTIVE"]) > 0.96
    assert max(seen["PROF_DRAM_ACTIVE"]) < 0.5


def test_another_test_drives_another_part() -> None:
    world = small_world(CPU_POOL, H200)
    started_tester(world, args=["--no-dcgm-validation", "-t", "1005", "-d=60"])
    live(world, 5)
    seen = watch(world, 40, "PROF_PIPE_TENSOR_ACTIVE", "PROF_DRAM_ACTIVE")
    assert max(seen["PROF_PIPE_TENSOR_ACTIVE"]) == 0 and min(seen["PROF_DRAM_ACTIVE"]) > 0.85
    live(world, 20)
    assert state(world, "dcgmproftester") == "Succeeded"


PRINTED = """\
Skipping CreateDcgmGroups() since DCGM validation is disabled
CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR: 1024
CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: 40
CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR: 65536
CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: 7
CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: 5
CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH: 256
CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE: 5001000
Max Memory bandwidth: 320064000000 bytes (320.06 GiB)
CudaInit completed successfully.

Skipping WatchFields() since DCGM validation is disabled
TensorEngineActive: generated ???, dcgm 0.000 (27605.2 gflops)
TensorEngineActive: generated ???, dcgm 0.000 (28697.6 gflops)
"""
"""From document 002."""


def test_dcgmproftester_prints_what_document_002_prints() -> None:
    world = world_of("002")
    started_tester(world)
    live(world, 130)
    reported = [
        text
        for _, text in world.logs.lines("default", "dcgmproftester", "dcgmproftester11", False)
        or ()
    ]
    theirs = [line.rstrip() for line in PRINTED.splitlines()]
    assert reported[:12] == theirs[:12]
    assert [without_gflops(line) for line in reported[12:14]] == [
        without_gflops(line) for line in theirs[12:14]
    ]
    assert all(26_000 < gflops(line) < 29_000 for line in reported if "gflops" in line), (
        "as the T4 of the document"
    )
    assert sum("gflops" in line for line in reported) == 120, "one a second"


def without_gflops(line: str) -> str:
    return re.sub(r"\([\d.]+ gflops\)", "(… gflops)", line)


def gflops(line: str) -> float:
    found = re.search(r"\(([\d.]+) gflops\)", line)
    assert found is not None
    return float(found[1])


def test_a_tester_without_a_card_fails() -> None:
    world = small_world(CPU_POOL, H200)
    pod = yaml.safe_load(DOCUMENT_002)
    del pod["spec"]["containers"][0]["resources"]
    pod["spec"]["restartPolicy"] = "Never"
    pod["metadata"]["namespace"] = "default"
    world.cluster.create(pod)
    live(world, 90)
    assert state(world, "dcgmproftester") == "Failed"
    lines = world.logs.lines("default", "dcgmproftester", "dcgmproftester11", False) or ()
    assert [text for _, text in lines] == ["no CUDA-capable device is detected"]


def test_a_test_that_does_not_exist_is_reported() -> None:
    world = small_world(CPU_POOL, H200)
    pod = yaml.safe_load(DOCUMENT_002)
    pod["spec"]["containers"][0]["args"] = ["--no-dcgm-validation", "-t 1999", "-d 5"]
    pod["spec"]["restartPolicy"] = "Never"
    pod["metadata"]["namespace"] = "default"
    world.cluster.create(pod)
    live(world, 90)
    assert state(world, "dcgmproftester") == "Failed"
    lines = world.logs.lines("default", "dcgmproftester", "dcgmproftester11", False) or ()
    assert "A test for fieldId 1999 has not been implemented yet." in [text for _, text in lines]


def test_the_cuda_malloc_of_document_001_takes_what_the_document_shows() -> None:
    """3193 MiB in a container, 6396 MiB (twice that, and the driver's) on the card; the GPU is
    idle.
    """
    world = world_of("001")
    world.cluster.mutate(
        NODES, None, "cn-hangzhou.192.168.2.167", lambda node: labelled(node, "cgpu", "true")
    )
    (stateful,) = manifests("app-3g-v1-shared.yaml")
    stateful["metadata"]["namespace"] = "default"
    world.cluster.create(stateful)
    live(world, 120)
    card = busy_card(world)
    assert [process.memory_used_bytes >> 20 for process in card.processes] == [3193, 3193]
    assert abs(float(card.fields["DCGM_FI_DEV_FB_USED"]) - 6396) <= 10
    assert card.fields["DCGM_FI_DEV_GPU_UTIL"] == 0


def labelled(node: Object, label: str, value: str) -> Object:
    return {
        **node,
        "metadata": {**node["metadata"], "labels": {**node["metadata"]["labels"], label: value}},
    }


@pytest.mark.parametrize("name", ["mem_deployment.yaml", "gpu_deployment.yaml"])
def test_the_notebooks_of_document_003_work_now_and_then(name: str) -> None:
    """Its image starts Jupyter when it has no command, and users run cells in it."""
    world = world_of("003")
    for obj in manifests(name):
        if obj["kind"] == "Deployment":
            obj["metadata"]["namespace"] = "default"
            obj["spec"]["replicas"] = 1
            world.cluster.create(obj)
    live(world, 90)
    utils: Series = []
    for _ in range(120):
        live(world, 60)
        utils += [
            float(sample.fields["DCGM_FI_DEV_GPU_UTIL"])
            for sample in world.devices.sample()
            if sample.processes
        ]
    assert utils and min(utils) == 0 < max(utils)


def test_the_load_generator_of_fairlead_plays_as_exactly() -> None:
    world = small_world(CPU_POOL, H200)
    started_tester(
        world,
        image="fairlead:0.1.0",
        command=["fairlead", "gpu-load"],
        args=["--no-dcgm-validation", "-t 1004", "-d 120"],
    )
    live(world, 5)
    seen = watch(world, 100, "PROF_PIPE_TENSOR_ACTIVE", "PROF_GR_ENGINE_ACTIVE", "DEV_GPU_UTIL")
    assert (
        set(seen["PROF_PIPE_TENSOR_ACTIVE"]),
        set(seen["PROF_GR_ENGINE_ACTIVE"]),
        set(seen["DEV_GPU_UTIL"]),
    ) == ({0.87}, {0.98}, {98})
    live(world, 20)
    assert state(world, "dcgmproftester") == "Succeeded"


def test_a_duty_cycle_rises_over_its_test() -> None:
    world = small_world(CPU_POOL, H200)
    started_tester(world, args=["-t 1001", "-d 100"])
    seen = watch(world, 95, "DEV_GPU_UTIL")["DEV_GPU_UTIL"]
    assert seen == sorted(seen) and seen[0] <= 10 and seen[-1] >= 90
