"""Where pods are placed, and the messages of waiting pods."""

from __future__ import annotations

import json

import pytest
from tests.sim.small_world import (
    CPU_POOL,
    GPU_POOL,
    NAMESPACE,
    SHARED_POOL,
    NodePool,
    condition,
    get_pod,
    live,
    phase,
    pod,
    reasons,
    small_world,
)

from fairlead.wire import names
from fairlead_sim.objects.resources import NODES, PODS, PRIORITY_CLASSES
from fairlead_sim.scenario.scenario import PoolTaint, PriorityClass

NO_CLAIMS = "no new claims to deallocate, preemption:"
NOT_HELPFUL = "Preemption is not helpful for scheduling"
MASTER = NodePool(
    name="master",
    role="control-plane",
    taints=(PoolTaint("node-role.kubernetes.io/control-plane"),),
)


def node_of(world: object, name: str = "p") -> str | None:
    return get_pod(world, name)["spec"].get("nodeName")  # type: ignore[arg-type]


def why(world: object, name: str = "p") -> str:
    scheduled = condition(get_pod(world, name), "PodScheduled")  # type: ignore[arg-type]
    assert (scheduled["status"], scheduled["reason"]) == ("False", "Unschedulable")
    return str(scheduled["message"])


def test_plain_pods_keep_off_gpu_nodes() -> None:
    world = small_world()
    world.cluster.create(pod())
    live(world, 5)
    assert node_of(world) == "cpu-1"
    assert reasons(world, "p")[0] == "Scheduled"


def test_gpu_pods_fill_the_fuller_node_first() -> None:
    world = small_world(
        CPU_POOL, NodePool(name="gpu", count=2, cpu=32, gpu_model="Tesla T4", gpus=4)
    )
    for name, gpus in (("a", 1), ("b", 1), ("c", 4)):
        world.cluster.create(pod(name, gpus=gpus))
        live(world, 5)
    assert node_of(world, "a") == node_of(world, "b") == "gpu-1"
    assert node_of(world, "c") == "gpu-2"


def test_the_sentence_of_a_waiting_pod_is_kubernetes_own() -> None:
    world = small_world(MASTER, CPU_POOL, GPU_POOL, NodePool(name="closed", cordoned=True))
    world.cluster.create(pod(gpus=5))
    live(world, 5)
    message = (
        "1 node(s) had untolerated taint(s), 1 node(s) were unschedulable, 2 Insufficient "
        "nvidia.com/gpu"
    )
    assert why(world) == (
        f"0/4 nodes are available: {message}. {NO_CLAIMS} 0/4 nodes are available: 4 {NOT_HELPFUL}."
    )
    assert reasons(world, "p") == ["FailedScheduling"]
    assert phase(world) == "Pending"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"nodeSelector": {"zone": "moon"}}, "3 node(s) didn't match Pod's node affinity/selector"),
        (
            {"containers": [{"name": "m", "image": "a", "resources": {"requests": {"cpu": "99"}}}]},
            "3 Insufficient cpu",
        ),
        (
            {
                "containers": [
                    {"name": "m", "image": "a", "resources": {"requests": {"memory": "1e30"}}}
                ]
            },
            "3 Insufficient memory",
        ),
    ],
)
def test_other_reasons_to_wait(spec: dict[str, object], message: str) -> None:
    world = small_world()
    world.cluster.create(pod() | {"spec": {**pod()["spec"], **spec}})
    live(world, 5)
    assert why(world) == (
        f"0/3 nodes are available: {message}. {NO_CLAIMS} 0/3 nodes are available: 3 {NOT_HELPFUL}."
    )


def test_a_waiting_pod_goes_as_soon_as_there_is_room() -> None:
    world = small_world()
    world.cluster.create(pod("first", image="train:2m", gpus=4))
    live(world, 5)
    world.cluster.create(pod("second", gpus=2))
    live(world, 60)
    assert node_of(world, "second") is None
    live(world, 120)
    assert node_of(world, "second") == "gpu-1"


def test_higher_priority_goes_first_then_the_older() -> None:
    world = small_world(GPU_POOL, priority_classes=(PriorityClass("urgent", 100),))
    assert world.cluster.get(PRIORITY_CLASSES, None, "urgent")
    world.cluster.create(pod("holder", image="train:2m", gpus=4))
    live(world, 5)
    for name, priority in (("old", ""), ("young", ""), ("urgent", "urgent")):
        world.cluster.create(pod(name, gpus=4, image="train:1m", priorityClassName=priority))
        live(world, 2)
    order = []
    for _ in range(60):
        live(world, 10)
        order += [
            name
            for name in ("old", "young", "urgent")
            if node_of(world, name) and name not in order
        ]
    assert order == ["urgent", "old", "young"]


def test_a_gated_pod_is_not_looked_at_until_the_gate_is_gone() -> None:
    world = small_world()
    world.cluster.create(pod(schedulingGates=[{"name": "fairlead.io/quota"}]))
    live(world, 10)
    assert condition(get_pod(world), "PodScheduled")["reason"] == "SchedulingGated"
    world.cluster.mutate(
        PODS, NAMESPACE, "p", lambda old: {**old, "spec": {**old["spec"], "schedulingGates": []}}
    )
    live(world, 60)
    assert phase(world) == "Running"


def test_a_pod_of_another_scheduler_is_left_alone() -> None:
    world = small_world()
    world.cluster.create(pod(schedulerName="theirs"))
    live(world, 10)
    assert node_of(world) is None
    assert condition(get_pod(world), "PodScheduled") == {}


def test_cordon_and_uncordon() -> None:
    world = small_world(CPU_POOL)

    def cordon(value: bool) -> None:
        world.cluster.mutate(
            NODES,
            None,
            "cpu-1",
            lambda node: {**node, "spec": {**node["spec"], "unschedulable": value}},
        )

    cordon(True)
    world.cluster.create(pod())
    live(world, 10)
    assert why(world).startswith("0/1 nodes are available: 1 node(s) were unschedulable. ")
    cordon(False)
    live(world, 10)
    assert node_of(world) == "cpu-1"


def test_shared_pods_go_on_the_fullest_card_that_fits_and_show_it() -> None:
    world = small_world()
    for number, units in enumerate((4, 6, 8, 9)):
        world.cluster.create(pod(f"p{number}", gpu_memory=units))
        live(world, 3)
    chosen = [get_pod(world, f"p{number}")["metadata"]["annotations"] for number in range(3)]
    assert [notes[names.ANNOTATION_GPU_INDEX] for notes in chosen] == ["0", "0", "1"]
    grant = json.loads(chosen[0][names.ANNOTATION_ALLOCATION])["main"][0]
    assert (grant["index"], grant["units"], grant["mib"]) == (0, 4, 4301)
    assert grant["uuid"] == world.devices.cards("shared-1")[0].uuid
    assert json.loads(chosen[0][names.ANNOTATION_REFERENCE_ALLOCATION]) == {"0": {"0": 4}}
    assert (chosen[0][names.ANNOTATION_GPU_POD], chosen[0][names.ANNOTATION_GPU_DEVICE]) == (
        "4",
        "15",
    )
    assert chosen[0][names.ANNOTATION_GPU_ASSIGNED] == "true"
    assert chosen[0][names.ANNOTATION_GPU_ASSUME_TIME].isdigit()
    assert "need 9 GiB, largest free 7 GiB" in why(world, "p3")


def test_room_on_two_cards_does_not_add_up() -> None:
    world = small_world(SHARED_POOL)
    world.cluster.create(pod("a", gpu_memory=10))
    world.cluster.create(pod("b", gpu_memory=10))
    world.cluster.create(pod("c", gpu_memory=8))
    live(world, 10)
    assert "Insufficient aliyun.com/gpu-mem on one GPU: need 8 GiB, largest free 5 GiB" in why(
        world, "c"
    )
