"""The default world has data for every panel of the four boards, at the start and hours later."""

from __future__ import annotations

from collections import Counter
from time import process_time

import pytest
from tests.sim.small_world import EPOCH, states

from fairlead.run.hooks.sharing_hooks import sharing_world
from fairlead.wire.names import NVIDIA_GPU
from fairlead_sim.objects.resources import (
    ELASTIC_QUOTA_TREES,
    EVENTS,
    JOBS,
    MPI_JOBS,
    NODES,
    PODS,
    PYTORCH_JOBS,
    REPLICA_SETS,
    TF_JOBS,
)
from fairlead_sim.objects.watch_log import ADDED
from fairlead_sim.scenario.file import load_scenario
from fairlead_sim.world.world import World

TRAINING = (MPI_JOBS, TF_JOBS, PYTORCH_JOBS)
INSTANTS = (0, 1, 12)
SEEDS = (0, 7)
LIVES = [
    pytest.param(
        (seed, hours),
        marks=[pytest.mark.long] if hours or seed else [],
        id=f"seed {seed}, {hours} h later",
    )
    for seed in SEEDS
    for hours in INSTANTS
    if hours == INSTANTS[-1] or seed == SEEDS[0]
]


@pytest.fixture(scope="module", params=LIVES)
def life(request: pytest.FixtureRequest) -> tuple[World, Counter[str]]:
    """The world hours later, and the number of messages that quota wrote."""
    seed, hours = request.param
    world = sharing_world(load_scenario("default"), seed, EPOCH)
    reported: Counter[str] = Counter()
    world.cluster.subscribe(
        EVENTS,
        lambda change: reported.update([change.object["reason"]]) if change.type == ADDED else None,
    )
    world.warm_up()
    world.run_until(world.clock.now() + 3600 * hours)
    return world, reported


@pytest.fixture
def world(life: tuple[World, Counter[str]]) -> World:
    return life[0]


def job_states(world: World) -> list[str]:
    order = ("Failed", "Succeeded", "Restarting", "Running", "Created")
    jobs = [job for ref in TRAINING for job in world.cluster.list(ref)]
    return [
        next(state for state in order if states(job).get(state) == "True")
        for job in jobs
        if states(job)
    ]


def gpus_of(world: World, namespace: str, *, waiting: bool) -> int:
    return sum(
        int(container["resources"]["limits"].get(NVIDIA_GPU, 0))
        for pod in world.cluster.list(PODS, namespace)
        if pod["status"]["phase"] in ("Pending", "Running")
        and bool(pod["spec"].get("nodeName")) is not waiting
        for container in pod["spec"]["containers"]
    )


def test_jobs_of_every_kind_and_state(world: World) -> None:
    found = set(job_states(world))
    assert {"Running", "Created", "Succeeded", "Failed"} <= found
    assert all(world.cluster.list(ref) for ref in (*TRAINING, JOBS))


def test_a_leaf_below_its_min_waits(world: World) -> None:
    assert gpus_of(world, "language", waiting=True) + gpus_of(world, "vision", waiting=True) > 0
    assert gpus_of(world, "language", waiting=False) <= 16
    (tree,) = world.cluster.list(ELASTIC_QUOTA_TREES)
    assert tree["spec"]["root"]["children"][0]["children"][0]["namespaces"] == ["vision"]


def test_quota_is_borrowed_taken_back_and_borrowed_again(life: tuple[World, Counter[str]]) -> None:
    _, reported = life
    assert all(
        reported[reason]
        for reason in ("QuotaWaiting", "QuotaReclaimed", "QuotaSuspended", "QuotaResumed")
    ), reported


def test_nodes_of_both_modes_and_one_unhealthy_card(world: World) -> None:
    samples = world.devices.sample()
    assert len(samples) == 32
    assert [(sample.node, sample.index) for sample in samples if not sample.healthy] == [
        ("gpu-v100-2", 3)
    ]
    assert {sample.model for sample in samples} == {"NVIDIA A100-SXM4-80GB", "Tesla V100-SXM2-16GB"}
    sick = world.cluster.get(NODES, None, "gpu-v100-2")
    assert sick is not None
    assert (sick["status"]["capacity"][NVIDIA_GPU], sick["status"]["allocatable"][NVIDIA_GPU]) == (
        "4",
        "3",
    )


def test_cards_busy_idle_shared_and_free(world: World) -> None:
    samples = [sample for sample in world.devices.sample() if sample.up]
    utils = [sample.fields["DCGM_FI_DEV_GPU_UTIL"] for sample in samples]
    assert max(utils) > 70
    assert any(
        sample.processes and util == 0 for sample, util in zip(samples, utils, strict=True)
    ), "allocated but idle"
    assert any(not sample.processes for sample in samples), "free"
    assert any(len({process.pod for process in sample.processes}) > 1 for sample in samples), (
        "shared by several"
    )
    assert 0.2 < sum(utils) / len(utils) / 100 < 0.8


def test_something_restarts_and_something_warns(world: World) -> None:
    restarts = [
        status["restartCount"]
        for pod in world.cluster.list(PODS)
        for status in pod["status"].get("containerStatuses") or ()
    ]
    assert max(restarts) > 3
    assert any(event["type"] == "Warning" for event in world.cluster.list(EVENTS))


def test_services_stand(world: World) -> None:
    ready = {
        item["metadata"]["name"].rpartition("-")[0]: item["status"].get("readyReplicas", 0)
        for item in world.cluster.list(REPLICA_SETS)
    }
    assert ready["ocr-infer"] == 4
    assert ready["chat-llm"] == 2


def test_the_world_stays_small(world: World) -> None:
    assert len(world.cluster.list(PODS)) < 200
    assert len(world.cluster.list(EVENTS)) < 1500
    assert sum(len(world.cluster.list(ref)) for ref in (*TRAINING, JOBS)) < 150


@pytest.mark.long
def test_the_warm_up_takes_seconds_of_cpu_and_no_more() -> None:
    """1.7 s on a free machine, of which half is for quota; a busy machine takes more than twice as
    long.
    """
    began = process_time()
    sharing_world(load_scenario("default"), 0, EPOCH).warm_up()
    assert process_time() - began < 10.0
