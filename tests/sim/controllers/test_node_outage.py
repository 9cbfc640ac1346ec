"""A node stops reporting: it becomes unknown and tainted, its pods are evicted after five minutes
and stay terminating until it comes back.
"""

from __future__ import annotations

import pytest
from tests.sim.controllers.workloads import workload
from tests.sim.small_world import (
    NAMESPACE,
    condition,
    get_pod,
    live,
    phase,
    pod,
    reasons,
    small_world,
)

from fairlead.errors import UserError
from fairlead_sim.objects.resources import NODES, PODS
from fairlead_sim.scenario.file import parse_scenario
from fairlead_sim.scenario.scenario import Duration, NodePool, Outage
from fairlead_sim.world.world import World

POOL = NodePool(name="gpu", count=2, gpu_model="Tesla T4", gpus=1)


def node(world: World, name: str = "gpu-1") -> dict:  # type: ignore[type-arg]
    found = world.cluster.get(NODES, None, name)
    assert found is not None
    return found


def world_with_outage(until: float | None = None) -> World:
    ends = Duration(until) if until else None
    return small_world(POOL, outages=(Outage("gpu-1", Duration(100), ends),))


def on_first() -> dict[str, object]:
    return {"nodeSelector": {"kubernetes.io/hostname": "gpu-1"}}


def taints(world: World) -> list[tuple[str, str]]:
    return [
        (taint["key"].rpartition("/")[2], taint["effect"])
        for taint in node(world)["spec"].get("taints", ())
    ]


def test_after_its_lease_the_node_is_unknown_and_tainted_and_gives_no_readings() -> None:
    world = world_with_outage()
    world.cluster.create(pod(**on_first()))
    live(world, 145)
    assert condition(node(world), "Ready")["status"] == "True"
    live(world, 10)
    ready = condition(node(world), "Ready")
    assert (ready["status"], ready["reason"]) == ("Unknown", "NodeStatusUnknown")
    assert taints(world) == [("unreachable", "NoSchedule"), ("unreachable", "NoExecute")]
    assert {sample.node for sample in world.devices.sample()} == {"gpu-2"}
    assert condition(get_pod(world), "Ready")["status"] == "False"
    assert phase(world) == "Running"


def test_pods_are_evicted_when_their_patience_ends_and_are_stuck() -> None:
    world = world_with_outage()
    impatient = [
        {
            "key": "node.kubernetes.io/unreachable",
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": 30,
        }
    ]
    for_ever = [{"operator": "Exists"}]
    world.cluster.create(pod("usual", **on_first()))
    world.cluster.create(pod("impatient", tolerations=impatient, **on_first()))
    world.cluster.create(pod("patient", tolerations=for_ever, **on_first()))
    live(world, 185)

    def going() -> list[str]:
        return [
            item["metadata"]["name"]
            for item in world.cluster.list(PODS, NAMESPACE)
            if "deletionTimestamp" in item["metadata"]
        ]

    assert going() == ["impatient"]
    live(world, 240)
    assert going() == ["impatient"]
    live(world, 40)
    assert going() == ["impatient", "usual"]
    assert "TaintManagerEviction" in reasons(world, "usual")
    live(world, 3600)
    assert going() == ["impatient", "usual"]


def test_a_deployment_moves_its_pod_away_and_the_old_one_ends_when_the_node_is_back() -> None:
    world = world_with_outage(until=1800)
    world.cluster.create(workload("Deployment", replicas=2))
    live(world, 90)
    before = {
        item["metadata"]["name"]
        for item in world.cluster.list(PODS, NAMESPACE)
        if item["spec"]["nodeName"] == "gpu-1"
    }
    assert before
    live(world, 500)
    active = [
        item
        for item in world.cluster.list(PODS, NAMESPACE)
        if "deletionTimestamp" not in item["metadata"]
    ]
    assert {item["spec"]["nodeName"] for item in active} == {"gpu-2"}
    live(world, 1260)
    assert condition(node(world), "Ready")["status"] == "True"
    assert taints(world) == []
    assert not before & {item["metadata"]["name"] for item in world.cluster.list(PODS, NAMESPACE)}
    assert {sample.node for sample in world.devices.sample()} == {"gpu-1", "gpu-2"}


def test_a_short_silence_changes_nothing() -> None:
    world = world_with_outage(until=130)
    world.cluster.create(pod(**on_first()))
    live(world, 600)
    assert taints(world) == []
    assert condition(get_pod(world), "Ready")["status"] == "True"


def test_a_cordoned_node_carries_its_taint() -> None:
    world = small_world(NodePool(name="gpu", cordoned=True))
    live(world, 1)
    assert taints(world) == [("unschedulable", "NoSchedule")]


def test_an_outage_of_an_unknown_node_is_reported() -> None:
    text = 'title = "T"\n[[node_pools]]\nname = "a"\n[[outages]]\nnode = "b-1"\nat = "1m"\n'
    with pytest.raises(UserError) as caught:
        parse_scenario(text, "mine.toml")
    assert (
        caught.value.what
        == "scenario `mine.toml` line 5, key `outages[0].node`: there is no node `b-1`"
    )
