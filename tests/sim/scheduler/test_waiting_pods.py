"""The scheduler's queue: which pod is tried, and when again; many pods that wait for the same cost
a single look.
"""

from __future__ import annotations

from typing import Any

import pytest
from tests.sim.small_world import (
    CPU_POOL,
    GPU_POOL,
    NAMESPACE,
    NodePool,
    condition,
    get_pod,
    live,
    phase,
    pod,
    small_world,
)

from fairlead_sim.objects.resources import NODES, PODS
from fairlead_sim.scheduler.scheduler import MOST_LOOKS
from fairlead_sim.schema.resource import ResourceKind
from fairlead_sim.world.world import World

Object = dict[str, Any]


def full_world(waiting: int) -> World:
    """Four cards, all taken for ten minutes, and pods that request four."""
    world = small_world(CPU_POOL, GPU_POOL)
    world.cluster.create(pod("first", "train:10m", gpus=4))
    live(world, 60)
    for number in range(waiting):
        world.cluster.create(pod(f"late-{number:04}", gpus=4))
    live(world, 5)
    return world


def why(world: World, name: str) -> str:
    return str(condition(get_pod(world, name), "PodScheduled").get("message", ""))


def test_all_of_a_group_get_the_reason_and_the_oldest_gets_the_room() -> None:
    world = full_world(5)
    assert {why(world, f"late-{number:04}") for number in range(5)} == {
        "0/2 nodes are available: 2 Insufficient nvidia.com/gpu. no new claims to deallocate, "
        "preemption: "
        "0/2 nodes are available: 1 No preemption victims found for incoming pod, 1 "
        "Preemption is not helpful for scheduling."
    }
    live(world, 700)
    assert phase(world, "late-0000") == "Running"
    assert phase(world, "late-0001") == "Pending"


def test_a_pod_that_comes_late_to_its_group_gets_the_reason_at_once() -> None:
    world = full_world(3)
    world.cluster.create(pod("newest", gpus=4))
    live(world, 1)
    assert why(world, "newest") == why(world, "late-0000") != ""


def test_many_waiters_for_the_same_cost_one_look(monkeypatch: pytest.MonkeyPatch) -> None:
    world = full_world(400)
    looks: list[str] = []
    get = world.cluster.get

    def counted(ref: ResourceKind, namespace: str | None, name: str) -> Object | None:
        if name.startswith("late-"):
            looks.append(name)
        return get(ref, namespace, name)

    monkeypatch.setattr(world.cluster, "get", counted)
    world.cluster.create(pod("small", "train:5s"))
    live(world, 60)
    assert len(looks) < 20, "the end of a pod without GPUs is no reason to try 400 that want some"
    live(world, 700)
    assert phase(world, "late-0000") == "Running"
    assert len(looks) < 40, "one is tried for all that got the same answer before"


def test_no_step_looks_at_more_than_it_may() -> None:
    world = full_world(600)
    most = 0
    until = world.clock.now() + 700
    while (at := world.timers.next_at()) is not None and at <= until:
        world.step()
        most = max(most, world.scheduler.looks)
    assert most <= MOST_LOOKS + 2_000
    assert phase(world, "late-0000") == "Running"


def _labelled(node: Object, zone: str) -> Object:
    return {
        **node,
        "metadata": {**node["metadata"], "labels": {**node["metadata"]["labels"], "zone": zone}},
    }


def test_a_new_node_helps_at_once() -> None:
    world = small_world(CPU_POOL)
    world.cluster.create(pod("wants", nodeSelector={"zone": "moon"}))
    live(world, 30)
    world.cluster.mutate(NODES, None, "cpu-1", lambda node: _labelled(node, "moon"))
    live(world, 5)
    assert get_pod(world, "wants")["spec"]["nodeName"] == "cpu-1"


def test_a_waiting_pod_that_asks_for_something_else_is_looked_at_anew() -> None:
    world = small_world(CPU_POOL, NodePool(name="other", cpu=4, labels={"zone": "sun"}))
    world.cluster.create(
        pod("wants", schedulingGates=[{"name": "example.com/later"}], nodeSelector={"zone": "moon"})
    )
    live(world, 5)

    def change(old: Object) -> Object:
        return {
            **old,
            "spec": {**old["spec"], "schedulingGates": [], "nodeSelector": {"zone": "sun"}},
        }

    world.cluster.mutate(PODS, NAMESPACE, "wants", change)
    live(world, 5)
    assert get_pod(world, "wants")["spec"]["nodeName"] == "other-1"
