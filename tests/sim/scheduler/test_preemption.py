"""Priorities: which pods are preempted for which, and the messages. The long ones are recorded from
kube-scheduler 1.36.3.
"""

from __future__ import annotations

from typing import Any

import pytest
from tests.sim.small_world import (
    GPU_POOL,
    NAMESPACE,
    condition,
    get_pod,
    live,
    phase,
    pod,
    pods,
    reasons,
    small_world,
)

from fairlead_sim.objects.resources import EVENTS, PODS
from fairlead_sim.scenario.scenario import NodePool, PoolTaint, PriorityClass
from fairlead_sim.schema.status import ApiStatus
from fairlead_sim.world.world import World

CLASSES = (
    PriorityClass("high", 1000),
    PriorityClass("polite", 500, preemption_policy="Never"),
    PriorityClass("low", -5),
)
RECORDED_POOLS = (
    NodePool(name="g", gpu_model="Tesla T4", gpus=1),
    NodePool(name="c", count=2),
    NodePool(name="tainted", taints=(PoolTaint("k", "v"),)),
    NodePool(name="closed", cordoned=True),
)
OUT = "0/5 nodes are available: 1 node(s) had untolerated taint(s), 1 node(s) were unschedulable, "
NO_CLAIMS = " no new claims to deallocate, preemption: "


def world_of(*pools: NodePool) -> World:
    return small_world(*(pools or (GPU_POOL,)), priority_classes=CLASSES)


def why(world: World, name: str) -> str:
    return str(condition(get_pod(world, name), "PodScheduled")["message"])


def create(
    world: World,
    name: str,
    seconds: float = 20,
    *,
    labels: dict[str, str] | None = None,
    **spec: Any,
) -> None:
    new = pod(name, **spec)
    new["metadata"]["labels"] = labels or {}
    world.cluster.create(new)
    live(world, seconds)


def test_the_sentences_are_those_of_the_real_scheduler() -> None:
    world = world_of(*RECORDED_POOLS)
    create(world, "first", gpus=1)
    create(world, "second", gpus=1)
    create(world, "zone", nodeSelector={"zone": "moon"})
    create(world, "polite", gpus=1, priorityClassName="polite")
    create(world, "big", gpus=2, priorityClassName="high")
    full = f"{OUT}3 Insufficient nvidia.com/gpu.{NO_CLAIMS}"
    nodes = "0/5 nodes are available:"
    assert why(world, "second") == (
        f"{full}{nodes} 1 No preemption victims found for incoming pod, 4 Preemption is not "
        "helpful for scheduling."
    )
    assert why(world, "polite") == f"{full}not eligible due to preemptionPolicy=Never."
    assert why(world, "big") == f"{full}{nodes} 5 Preemption is not helpful for scheduling."
    zone = (
        f"{OUT}3 node(s) didn't match Pod's node affinity/selector.{NO_CLAIMS}{nodes} 5 "
        "Preemption is not helpful for scheduling."
    )
    assert why(world, "zone") == zone


def test_a_victim_gets_an_event_ends_gracefully_and_its_place_is_kept() -> None:
    world = world_of()
    create(world, "victim", gpus=4, image="pause:35")
    live(world, 60)
    assert phase(world, "victim") == "Running"
    world.cluster.create(pod("urgent", gpus=4, priorityClassName="high"))
    live(world, 0.06)
    world.cluster.create(pod("thief", gpus=4))
    victim, urgent = get_pod(world, "victim"), get_pod(world, "urgent")
    assert victim["metadata"]["deletionGracePeriodSeconds"] == 30
    target = condition(victim, "DisruptionTarget")
    assert (target["status"], target["reason"]) == ("True", "PreemptionByScheduler")
    assert urgent["status"]["nominatedNodeName"] == "gpu-1"
    assert why(world, "urgent") == "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."
    live(world, 30)
    assert [item["metadata"]["name"] for item in pods(world)] == ["thief", "urgent"]
    assert get_pod(world, "urgent")["spec"]["nodeName"] == "gpu-1"
    assert "nominatedNodeName" not in get_pod(world, "urgent")["status"]
    assert "nodeName" not in get_pod(world, "thief")["spec"]
    (event,) = [
        event for event in world.cluster.list(EVENTS, NAMESPACE) if event["reason"] == "Preempted"
    ]
    assert event["message"] == f"Preempted by pod {urgent['metadata']['uid']} on node gpu-1"
    assert (event["type"], event["involvedObject"]["name"]) == ("Normal", "victim")


def test_only_as_many_as_needed_and_the_least_important() -> None:
    world = world_of()
    for name, gpus, name_of_class in (
        ("old", 1, ""),
        ("young", 1, ""),
        ("low", 1, "low"),
        ("mid", 1, "polite"),
    ):
        create(world, name, gpus=gpus, priorityClassName=name_of_class)
    create(world, "urgent", gpus=2, priorityClassName="high", seconds=60)
    assert {item["metadata"]["name"] for item in pods(world)} == {"old", "mid", "urgent"}


def test_the_node_whose_victims_matter_least_is_taken() -> None:
    world = world_of(NodePool(name="gpu", count=2, gpu_model="Tesla T4", gpus=2))
    create(world, "mid", gpus=2, priorityClassName="polite")
    create(world, "low", gpus=2, priorityClassName="low")
    create(world, "urgent", gpus=2, priorityClassName="high", seconds=60)
    assert {item["metadata"]["name"] for item in pods(world)} == {"mid", "urgent"}


def test_equal_priorities_never_preempt_each_other() -> None:
    world = world_of()
    create(world, "a", gpus=4, priorityClassName="high")
    create(world, "b", gpus=4, priorityClassName="high", seconds=300)
    assert phase(world, "a") == "Running"
    assert "Preempted" not in reasons(world, "a")


@pytest.mark.parametrize(
    ("allowed", "left"),
    [(0, {"free"}), (1, {"kept"})],
    ids=["a budget is kept", "unless it allows one"],
)
def test_budgets_are_kept_where_another_victim_will_do(allowed: int, left: set[str]) -> None:
    world = world_of(NodePool(name="gpu", gpu_model="Tesla T4", gpus=2))
    create(world, "free", gpus=1, priorityClassName="")
    create(world, "kept", gpus=1, priorityClassName="low", labels={"app": "kept"})
    selector = {"matchLabels": {"app": "kept"}}
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "b", "namespace": NAMESPACE},
    }
    world.cluster.create({**budget, "spec": {"maxUnavailable": allowed, "selector": selector}})
    live(world, 60)
    create(world, "urgent", gpus=1, priorityClassName="high", seconds=60)
    victims = {"free", "kept"} - {item["metadata"]["name"] for item in pods(world)}
    assert victims == left


def test_the_class_becomes_a_number_when_the_pod_is_made() -> None:
    world = world_of()
    create(world, "p", priorityClassName="polite")
    spec = get_pod(world)["spec"]
    assert (spec["priority"], spec["preemptionPolicy"]) == (500, "Never")
    create(world, "node-agent", priorityClassName="system-node-critical")
    assert get_pod(world, "node-agent")["spec"]["priority"] == 2_000_001_000


def test_a_global_default_is_for_pods_that_name_none() -> None:
    world = small_world(
        GPU_POOL, priority_classes=(PriorityClass("usual", 7, global_default=True),)
    )
    create(world, "p")
    assert (get_pod(world)["spec"]["priority"], get_pod(world)["spec"]["priorityClassName"]) == (
        7,
        "usual",
    )


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            {"priorityClassName": "nope"},
            ('pods "p" is forbidden: no PriorityClass with name nope was found'),
        ),
        (
            {"priority": 5},
            'pods "p" is forbidden: the integer value of priority (5) must not be provided in '
            "pod spec; "
            "priority admission controller computed 0 from the given PriorityClass name",
        ),
    ],
)
def test_what_the_admission_refuses(spec: dict[str, Any], message: str) -> None:
    world = world_of()
    with pytest.raises(ApiStatus) as caught:
        world.cluster.create(pod(**spec))
    assert (caught.value.code, caught.value.message) == (403, message)
    assert world.cluster.get(PODS, NAMESPACE, "p") is None
