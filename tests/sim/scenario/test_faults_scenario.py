"""The scenario `faults` shows each fault as a real cluster would."""

from __future__ import annotations

import pytest
from tests.sim.small_world import EPOCH, Object, condition

from fairlead.run.hooks.sharing_hooks import sharing_world
from fairlead_sim.objects.resources import NODES, PODS
from fairlead_sim.scenario.file import load_scenario
from fairlead_sim.world.world import World


@pytest.fixture(scope="module")
def world() -> World:
    world = sharing_world(load_scenario("faults"), 0, EPOCH)
    world.warm_up()
    return world


def pods(world: World, service: str) -> list[Object]:
    return [
        pod for pod in world.cluster.list(PODS) if pod["metadata"]["labels"].get("app") == service
    ]


def waiting_for(pod: Object) -> str:
    return str(pod["status"]["containerStatuses"][0]["state"].get("waiting", {}).get("reason", ""))


def test_silent_nodes_are_not_ready_and_give_no_readings(world: World) -> None:
    ready = {
        node["metadata"]["name"]: condition(node, "Ready")["status"]
        for node in world.cluster.list(NODES)
    }
    assert {name for name, status in ready.items() if status == "Unknown"} == {
        "gpu-3",
        "gpu-silent-1",
    }
    assert {sample.node for sample in world.devices.sample()} == {
        "gpu-1",
        "gpu-2",
        "gpu-cordoned-1",
    }


def test_a_card_fell_off_the_bus(world: World) -> None:
    assert (
        world.devices.cards("gpu-1")[0].failed_by,
        world.devices.cards("gpu-1")[0].is_healthy,
    ) == (79, False)
    node = world.cluster.get(NODES, None, "gpu-1")
    assert node is not None
    assert node["status"]["allocatable"]["nvidia.com/gpu"] == "3"


def test_a_pod_is_stuck_in_terminating_and_its_successor_waits(world: World) -> None:
    stuck = [pod for pod in pods(world, "left-behind") if "deletionTimestamp" in pod["metadata"]]
    assert [pod["spec"]["nodeName"] for pod in stuck] == ["gpu-3"]
    (successor,) = [
        pod for pod in pods(world, "left-behind") if "deletionTimestamp" not in pod["metadata"]
    ]
    assert condition(successor, "PodScheduled")["reason"] == "SchedulingGated"
    waits = condition(successor, "fairlead.io/QuotaAdmitted")
    assert waits["reason"] == "OverMax"
    assert "that the cluster's nodes have" in waits["message"], (
        "what is stuck on a dead node is held still"
    )


def test_a_crash_loop_and_a_missing_image(world: World) -> None:
    (crashing,), (missing,) = pods(world, "crash-loop"), pods(world, "no-such-image")
    assert crashing["status"]["containerStatuses"][0]["restartCount"] > 5
    assert waiting_for(missing) == "ImagePullBackOff"
