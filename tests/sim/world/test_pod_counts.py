"""Absurd numbers of pods: the API refuses them with a message, and what is allowed is created in
bursts, so that no client waits for it.
"""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

import pytest
from tests.sim.objects import StillClock
from tests.sim.small_world import NAMESPACE, Object, container, get, live, pods, small_world
from tests.waiting import HANG_SECONDS

from fairlead_sim.objects.pod_counts import BURST, MOST_PODS
from fairlead_sim.objects.resources import DEPLOYMENTS, PODS, PYTORCH_JOBS
from fairlead_sim.schema.status import ApiStatus
from fairlead_sim.world.driver import LONGEST_WORK_SECONDS, Driver
from fairlead_sim.world.world import World

MANY = 1_000_000_000
TEMPLATE = {
    "metadata": {"labels": {"app": "a"}},
    "spec": {"restartPolicy": "Never", "containers": [container()]},
}
SELECTED = {
    "selector": {"matchLabels": {"app": "a"}},
    "template": {**TEMPLATE, "spec": {"containers": [container()]}},
}
ROLES = {
    "MPIJob": "mpiReplicaSpecs",
    "TFJob": "tfReplicaSpecs",
    "PyTorchJob": "pytorchReplicaSpecs",
}
KINDS = ("Deployment", "ReplicaSet", "StatefulSet", "Job", *ROLES)


def asking(kind: str, count: Any) -> Object:
    """An object of the kind that requests this number of pods."""
    if kind == "Job":
        version, spec = (
            "batch/v1",
            {"parallelism": count, "completions": count, "template": TEMPLATE},
        )
    elif kind in ROLES:
        version = "kubeflow.org/v2beta1" if kind == "MPIJob" else "kubeflow.org/v1"
        launcher = {"Launcher": {"replicas": 1, "template": TEMPLATE}} if kind == "MPIJob" else {}
        spec = {ROLES[kind]: {**launcher, "Worker": {"replicas": count, "template": TEMPLATE}}}
    else:
        version, spec = "apps/v1", {**SELECTED, "replicas": count}
        spec |= (
            {"podManagementPolicy": "Parallel", "serviceName": "a"} if kind == "StatefulSet" else {}
        )
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": "a", "namespace": NAMESPACE},
        "spec": spec,
    }


def field_of(kind: str) -> str:
    return (
        f"spec.{ROLES[kind]}.Worker.replicas"
        if kind in ROLES
        else "spec.parallelism"
        if kind == "Job"
        else "spec.replicas"
    )


@pytest.mark.parametrize("kind", KINDS)
def test_an_absurd_number_is_refused_with_its_value_and_the_limit(kind: str) -> None:
    with pytest.raises(ApiStatus) as refusal:
        small_world().cluster.create(asking(kind, MANY))
    assert (refusal.value.code, refusal.value.reason) == (422, "Invalid")
    assert (
        f"{field_of(kind)}: Invalid value: {MANY}: must be less than or equal to {MOST_PODS}"
    ) in refusal.value.message


@pytest.mark.parametrize("kind", ROLES)
@pytest.mark.parametrize(
    ("count", "found"), [("1000000000", "string"), (float("inf"), "number"), (True, "boolean")]
)
def test_a_number_that_is_none_is_refused_by_its_type(kind: str, count: Any, found: str) -> None:
    with pytest.raises(
        ApiStatus, match=(f'{field_of(kind)} in body must be of type integer: "{found}"')
    ):
        small_world().cluster.create(asking(kind, count))


def test_less_than_nothing_is_refused() -> None:
    with pytest.raises(ApiStatus, match="must be greater than or equal to 0"):
        small_world().cluster.create(asking("Deployment", -1))


@pytest.mark.parametrize(
    ("ref", "kind"), [(DEPLOYMENTS, "Deployment"), (PYTORCH_JOBS, "PyTorchJob")]
)
def test_scaling_goes_no_further_than_creating(ref: Any, kind: str) -> None:
    world = small_world()
    world.cluster.create(asking(kind, 1))
    served = next(view for view in world.cluster.served_kinds() if (view.stored_as or view) is ref)
    with pytest.raises(ApiStatus, match=f"must be less than or equal to {MOST_PODS}"):
        world.cluster.scale(served, NAMESPACE, "a", {"spec": {"replicas": MANY}})
    live(world, 5)
    assert world.cluster.scale_of(served, get(world, ref, "a"))["spec"]["replicas"] == 1


def births(world: World, seconds: float) -> list[int]:
    """How many pods each step of the world created."""
    until, counts, before = world.clock.now() + seconds, [], world.cluster.count(PODS, NAMESPACE)
    while (due := world.timers.next_at()) is not None and due <= until:
        world.step()
        counts.append(world.cluster.count(PODS, NAMESPACE) - before)
        before += counts[-1]
    return counts


@pytest.mark.parametrize(
    "kind",
    [
        "ReplicaSet",
        "StatefulSet",
        "Job",
        "MPIJob",
        *(pytest.param(kind, marks=pytest.mark.long) for kind in ("TFJob", "PyTorchJob")),
    ],
)
def test_many_pods_come_in_bursts_until_all_are_there(kind: str) -> None:
    world = small_world()
    world.cluster.create(asking(kind, 600))
    counts = births(world, 10)
    assert max(counts) <= BURST + 1, "an MPIJob's launcher may come in the same step"
    workers = [pod for pod in pods(world) if "launcher" not in pod["metadata"]["name"]]
    assert len(workers) == 600


def test_many_objects_that_ask_at_once_take_turns() -> None:
    world = small_world()
    for number in range(4):
        asked = asking("ReplicaSet", 300)
        world.cluster.create({**asked, "metadata": {**asked["metadata"], "name": f"a{number}"}})
    counts = births(world, 10)
    assert max(counts) < 2 * BURST
    assert len(pods(world)) == 4 * 300


async def test_the_driver_lets_others_have_their_turn() -> None:
    """Ten long tasks are due at once: the event loop is free between them."""
    world, wall = small_world(), StillClock()
    driver = Driver(world, 1.0, wall.now)
    done: list[float] = []

    def work() -> None:
        wall.at += LONGEST_WORK_SECONDS / 2 + 0.001
        done.append(wall.now())

    for _ in range(10):
        world.timers.after(0.0, work)
    driver.catch_up()
    assert 1 <= len(done) < 5
    running = asyncio.create_task(driver.run())
    looks = [len(done)]
    async with asyncio.timeout(HANG_SECONDS):
        while looks[-1] < 10:
            await asyncio.sleep(0)
            looks.append(len(done))
    running.cancel()
    assert max(later - earlier for earlier, later in pairwise(looks)) == 2
