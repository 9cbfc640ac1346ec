"""Shared GPUs in the simulated cluster: placements, the messages of waiting pods, and writes that
are refused.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.sim.small_world import (
    EPOCH,
    NAMESPACE,
    SHARED_POOL,
    condition,
    container,
    get_pod,
    live,
    phase,
    reasons,
    small_scenario,
    small_world,
)
from tests.sim.small_world import pod as make_pod

from fairlead.rules.sharing.admission import GRANT_WRITERS
from fairlead.run.hooks.sharing_hooks import SharedGpus
from fairlead.wire import names
from fairlead_sim.objects.resources import CONFIG_MAPS, DEPLOYMENTS, EVENTS, NODES, PODS
from fairlead_sim.scenario.scenario import NodePool
from fairlead_sim.scheduler.scheduler import NO_EXTENDER
from fairlead_sim.schema.status import ApiStatus
from fairlead_sim.world.world import World

T4 = NodePool(name="t4", cpu=16, memory="64Gi", gpu_model="Tesla T4", gpus=1, shared=True)
"""14 units."""
V100S = SHARED_POOL
"""Two cards of 15 units."""


def share(world: World, name: str, units: int, **more: Any) -> None:
    metadata = more.pop("metadata", {})
    obj = make_pod(name, gpu_memory=units, **more)
    world.cluster.create({**obj, "metadata": {**obj["metadata"], **metadata}})


def grants(world: World, name: str) -> dict[str, list[tuple[int, int, int]]]:
    """By container (index, units, MiB)."""
    text = get_pod(world, name)["metadata"]["annotations"][names.ANNOTATION_ALLOCATION]
    return {
        part: [(each["index"], each["units"], each["mib"]) for each in given]
        for part, given in json.loads(text).items()
    }


def message(world: World, name: str = "p") -> str:
    return str(condition(get_pod(world, name), "PodScheduled").get("message", ""))


def reported(world: World, about: str, reason: str) -> list[tuple[str, str]]:
    """(component, message) of the Events with this reason, in any order."""
    found = [
        event
        for event in world.cluster.list(EVENTS)
        if event["involvedObject"]["name"] == about and event["reason"] == reason
    ]
    return [(event["source"]["component"], event["message"]) for event in found]


def test_four_notebooks_of_document_003() -> None:
    world = small_world(T4)
    for number in range(4):
        share(world, f"n{number}", 4, image="app:100")
        live(world, 60)
    assert [phase(world, f"n{number}") for number in range(4)] == ["Running"] * 3 + ["Pending"]
    assert grants(world, "n2") == {"main": [(0, 4, 4308)]}
    annotations = get_pod(world, "n0")["metadata"]["annotations"]
    assert annotations[names.ANNOTATION_GPU_INDEX] == "0"
    assert (annotations[names.ANNOTATION_GPU_POD], annotations[names.ANNOTATION_GPU_DEVICE]) == (
        "4",
        "14",
    )
    assert annotations[names.ANNOTATION_REFERENCE_ALLOCATION] == '{"0":{"0":4}}'
    assert (
        annotations[names.ANNOTATION_GPU_ASSIGNED]
        == annotations[names.ANNOTATION_REFERENCE_ASSIGNED]
        == "true"
    )
    sentence = (
        "0/1 nodes have room: 1 Insufficient aliyun.com/gpu-mem on one GPU: need 4 GiB, largest "
        "free 2 GiB"
    )
    assert reported(world, "n3", "GPUShareNoRoom") == [("fairlead-scheduler", sentence)]
    world.cluster.delete(PODS, NAMESPACE, "n1")
    live(world, 60)
    assert phase(world, "n3") == "Running"


def test_room_on_two_cards_does_not_add_up_and_kube_scheduler_prints_fairleads_sentence() -> None:
    world = small_world(V100S)
    for name, units in (("a", 11), ("b", 11)):
        share(world, name, units)
    share(world, "p", 8)
    live(world, 60)
    assert (grants(world, "a")["main"][0][0], grants(world, "b")["main"][0][0]) == (0, 1)
    assert message(world) == (
        "0/1 nodes are available: 1 Insufficient aliyun.com/gpu-mem on one GPU: need 8 GiB, "
        "largest free 4 GiB. no new claims to deallocate, preemption: 0/1 nodes are available: 1 "
        "No preemption victims found for incoming pod."
    )
    assert {component for component, _ in reported(world, "p", "FailedScheduling")} == {
        "fairlead-scheduler"
    }


def test_what_no_card_can_ever_take_is_not_helped_by_preemption() -> None:
    world = small_world(V100S)
    share(world, "p", 20)
    live(world, 60)
    assert message(world) == (
        "0/1 nodes are available: 1 need 20 GiB on one GPU, largest has 15 GiB. no new claims to "
        "deallocate, preemption: 0/1 nodes are available: 1 Preemption is not helpful for "
        "scheduling."
    )


def test_what_this_cluster_lacks_is_reported() -> None:
    world = small_world(V100S)
    share(world, "p", 8, metadata={"labels": {"aliyun.com/gpu-count": "4"}})
    live(world, 10)
    assert message(world).startswith("0/1 nodes are available: 1 need 4 GPUs, node has 2. ")


def test_what_no_node_can_run_is_refused_when_it_is_created_and_its_owner_shows_it() -> None:
    """tests/kube/admission_cases has all cases; this test checks what the owner of a
    workload sees.
    """
    world = small_world(V100S)
    refused = (
        "ValidatingAdmissionPolicy 'fairlead-gpu-asks' with binding 'fairlead-gpu-asks' denied "
        "request: no node can run this pod: asks for whole and shared GPUs; no node offers both"
    )
    limits = {"aliyun.com/gpu-mem": "4", "nvidia.com/gpu": "1"}
    with pytest.raises(ApiStatus) as seen:
        share(
            world,
            "p",
            0,
            containers=[{"name": "main", "image": "x", "resources": {"limits": limits}}],
        )
    assert (seen.value.code, seen.value.reason, seen.value.message) == (
        422,
        "Invalid",
        f'pods "p" is forbidden: {refused}',
    )
    template = {
        "metadata": {"labels": {"app": "both"}},
        "spec": {"containers": [{"name": "main", "image": "x", "resources": {"limits": limits}}]},
    }
    meta = {"name": "both", "namespace": NAMESPACE}
    selector = {"matchLabels": {"app": "both"}}
    spec = {"replicas": 1, "selector": selector, "template": template}
    world.cluster.create(
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec}
    )
    live(world, 10)
    (reported_once, *_) = [
        event
        for event in world.cluster.list(EVENTS, NAMESPACE)
        if event["reason"] == "FailedCreate"
    ]
    assert (
        reported_once["involvedObject"]["kind"] == "ReplicaSet"
        and refused in reported_once["message"]
    )


def test_two_cards_and_containers_apart() -> None:
    world = small_world(V100S)
    share(world, "wide", 8, metadata={"labels": {"aliyun.com/gpu-count": "2"}})
    parts = [container(name="a", gpu_memory=11), container(name="b", gpu_memory=10)]
    share(
        world,
        "apart",
        0,
        containers=parts,
        metadata={"annotations": {"fairlead.io/gpu-split": "per-container"}},
    )
    live(world, 30)
    assert grants(world, "wide") == {"main": [(0, 4, 4301), (1, 4, 4301)]}
    assert names.ANNOTATION_GPU_INDEX not in get_pod(world, "wide")["metadata"]["annotations"]
    assert {part: given[0][0] for part, given in grants(world, "apart").items()} == {"a": 0, "b": 1}
    assert phase(world, "wide") == phase(world, "apart") == "Running"


# --- preemption -----------------------------------------------------------------------------------


def ranked(world: World, name: str, units: int, priority: int) -> None:
    classes = {0: "low", 5: "middle", 9: "high"}
    share(world, name, units, priorityClassName=classes[priority])


def world_with_classes() -> World:
    world = small_world(V100S)
    for name, value in (("low", 0), ("middle", 5), ("high", 9)):
        found = {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
        }
        world.cluster.create(found)
    return world


def test_preemption_frees_one_card_and_not_the_sum() -> None:
    """By the sum of free units kube-scheduler would evict one pod per card; the extender names the
    pods of one card. No other pod takes the room meanwhile.
    """
    world = world_with_classes()
    for name, units, priority in (("a1", 8, 5), ("a2", 7, 5), ("b1", 9, 0), ("b2", 6, 0)):
        ranked(world, name, units, priority)
        live(world, 5)
    ranked(world, "vip", 15, 9)
    live(world, 3)
    ranked(world, "thief", 6, 0)
    live(world, 120)
    left = [item["metadata"]["name"] for item in world.cluster.list(PODS, NAMESPACE)]
    assert left == ["a1", "a2", "thief", "vip"]
    assert grants(world, "vip") == {"main": [(1, 15, 16130)]}
    assert phase(world, "thief") == "Pending"
    assert reported(world, "b1", "Preempted")[0][0] == "fairlead-scheduler"


def test_a_free_sum_without_victims_is_kube_schedulers_own_error() -> None:
    world = world_with_classes()
    for name in ("a", "b"):
        ranked(world, name, 11, 0)
    live(world, 5)
    ranked(world, "p", 8, 9)
    live(world, 30)
    assert message(world) == (
        "0/1 nodes are available: 1 Insufficient aliyun.com/gpu-mem on one GPU: need 8 GiB, "
        'largest free 4 GiB. preemption: expected at least one victim pod on node "shared-1"'
    )


# --- pods that were bound by others ---------------------------------------------------------------


def test_a_pod_that_was_bound_by_hand_is_adopted() -> None:
    world = small_world(V100S)
    share(world, "mine", 10)
    live(world, 20)
    share(world, "hand", 4, nodeName="shared-1")
    share(world, "large", 14, nodeName="shared-1")
    share(world, "none", 2, nodeName="shared-1")
    live(world, 90)
    assert (grants(world, "hand")["main"][0][0], phase(world, "hand")) == (0, "Running")
    assert (grants(world, "large")["main"][0][0], phase(world, "large")) == (1, "Running")
    assert reported(world, "none", "GPUShareNotPlaced") == [
        (
            "fairlead-scheduler",
            (
                "node shared-1 has no room: Insufficient aliyun.com/gpu-mem on one GPU: need 2 "
                "GiB, largest free 1 GiB"
            ),
        )
    ]
    assert phase(world, "none") == "Pending", "its kubelet tries again for ever"
    share(world, "beyond", 9, nodeName="shared-1")
    live(world, 20)
    assert (phase(world, "beyond"), get_pod(world, "beyond")["status"]["reason"]) == (
        "Failed",
        "UnexpectedAdmissionError",
    )
    world.cluster.delete(PODS, NAMESPACE, "large")
    live(world, 60)
    assert (grants(world, "none")["main"][0][0], phase(world, "none")) == (1, "Running")


def test_a_pod_that_asks_for_none_of_it_gets_no_grant() -> None:
    """`aliyun.com/gpu-mem: 0`: kube-scheduler calls the extender's bind all the same."""
    world = small_world(V100S)
    share(
        world,
        "zero",
        1,
        containers=[
            {"name": "main", "image": "pause:35", "resources": {"limits": {names.GPU_MEMORY: "0"}}}
        ],
    )
    live(world, 60)
    assert phase(world, "zero") == "Running"
    assert not set(get_pod(world, "zero")["metadata"].get("annotations", {})) & set(
        names.GRANT_ANNOTATIONS
    )


def test_an_operator_takes_a_card_out() -> None:
    world = small_world(V100S)
    meta = {"name": "unhealthy-gpu-shared-1", "namespace": "kube-system"}
    world.cluster.create(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"gpus": "0"}}
    )
    share(world, "p", 4)
    live(world, 20)
    assert grants(world, "p")["main"][0][0] == 1
    world.cluster.delete(CONFIG_MAPS, "kube-system", meta["name"])
    share(world, "q", 12)
    live(world, 20)
    assert grants(world, "q")["main"][0][0] == 0


@pytest.mark.parametrize("how", ["deleted", "emptied"])
def test_pods_that_a_withheld_card_kept_waiting_are_tried_when_it_comes_back(how: str) -> None:
    """Three pods that are alike and one that is not. kube-scheduler with a real extender does the
    same (`tests/kube/test_shared_cards.py`).
    """
    world = small_world(V100S)
    meta = {"name": "unhealthy-gpu-shared-1", "namespace": "kube-system"}
    world.cluster.create(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"gpus": "0,1"}}
    )
    for name, units in (("a", 4), ("b", 4), ("c", 4), ("d", 3)):
        share(world, name, units)
    live(world, 60)
    assert {phase(world, name) for name in "abcd"} == {"Pending"}
    if how == "deleted":
        world.cluster.delete(CONFIG_MAPS, "kube-system", meta["name"])
    else:
        world.cluster.mutate(
            CONFIG_MAPS, "kube-system", meta["name"], lambda old: {**old, "data": {"gpus": ""}}
        )
    live(world, 30)
    assert {phase(world, name) for name in "abcd"} == {"Running"}


def test_labels_that_contradict_each_other_are_reported_once() -> None:
    world = small_world(V100S)

    def labelled(node: dict[str, Any]) -> dict[str, Any]:
        return {
            **node,
            "metadata": {
                **node["metadata"],
                "labels": {**node["metadata"]["labels"], "gpushare": "false"},
            },
        }

    world.cluster.mutate(NODES, None, "shared-1", labelled)
    live(world, 600)
    sentence = "label cgpu=true overrides gpushare=false: the GPUs of this node are shared"
    assert reported(world, "shared-1", "GPUModeConflict") == [("fairlead-scheduler", sentence)]


def relabel(world: World, node: str, value: str) -> None:
    def change(old: dict[str, Any]) -> dict[str, Any]:
        return {
            **old,
            "metadata": {**old["metadata"], "labels": {**old["metadata"]["labels"], "cgpu": value}},
        }

    world.cluster.mutate(NODES, None, node, change)


def offered(world: World, node: str) -> dict[str, tuple[str, str]]:
    """GPU resource -> (capacity, allocatable)."""
    found = world.cluster.get(NODES, None, node)
    assert found is not None
    capacity, allocatable = found["status"]["capacity"], found["status"]["allocatable"]
    return {
        key.partition("/")[2]: (capacity[key], allocatable[key])
        for key in sorted(capacity)
        if "/" in key
    }


def test_a_card_held_in_the_old_mode_drains_and_is_never_offered_twice() -> None:
    world = small_world(NodePool(name="gpu", cpu=16, memory="64Gi", gpu_model="Tesla T4", gpus=2))
    world.cluster.create(make_pod("whole", gpus=1))
    live(world, 60)
    relabel(world, "gpu-1", "true")
    live(world, 1)
    assert offered(world, "gpu-1") == {
        "gpu-count": ("1", "1"),
        "gpu-mem": ("14", "14"),
        "gpu": ("1", "0"),
    }
    share(world, "a", 10)
    share(world, "b", 10)
    live(world, 60)
    assert grants(world, "a") == {"main": [(1, 10, 10770)]}
    assert phase(world, "b") == "Pending"
    world.cluster.delete(PODS, NAMESPACE, "whole")
    live(world, 10 + 30)
    assert offered(world, "gpu-1") == {"gpu-count": ("2", "2"), "gpu-mem": ("28", "28")}
    assert grants(world, "b")["main"][0][0] == 0
    relabel(world, "gpu-1", "false")
    live(world, 1)
    assert offered(world, "gpu-1") == {
        "gpu": ("0", "0"),
        "gpu-count": ("2", "0"),
        "gpu-mem": ("28", "0"),
    }
    share(world, "c", 1)
    live(world, 5)
    assert "node does not share GPUs" not in message(world, "c"), "kube-scheduler sees it first"
    assert phase(world, "c") == "Pending"
    for name in ("a", "b"):
        world.cluster.delete(PODS, NAMESPACE, name)
    live(world, 60)
    assert offered(world, "gpu-1") == {"gpu": ("2", "2")}


def test_a_node_shows_what_keeps_sharers_apart_while_there_may_be_some() -> None:
    world = small_world(NodePool(name="gpu", cpu=16, memory="64Gi", gpu_model="Tesla T4", gpus=1))

    def isolation() -> str | None:
        node = world.cluster.get(NODES, None, "gpu-1")
        assert node is not None
        return node["metadata"]["labels"].get("fairlead.io/gpu-isolation")

    assert isolation() is None
    relabel(world, "gpu-1", "true")
    live(world, 10)
    share(world, "a", 4)
    live(world, 30)
    relabel(world, "gpu-1", "false")
    live(world, 10)
    assert isolation() == "guard", "pod a still shares"
    world.cluster.delete(PODS, NAMESPACE, "a")
    live(world, 60)
    assert isolation() is None


@pytest.mark.parametrize(
    ("labels", "has_cores", "isolation"),
    [
        pytest.param({"gpushare": "true"}, False, "guard", id="the open-source reference's label"),
        pytest.param({"ack.node.gpu.schedule": "cgpu"}, False, "guard", id="the managed cluster's"),
        pytest.param({"ack.node.gpu.schedule": "core_mem"}, True, "guard", id="with cores"),
        pytest.param({"ack.node.gpu.schedule": "share"}, False, "none", id="without isolation"),
        pytest.param({"ack.node.gpu.schedule": "mps"}, False, "mps", id="MPS"),
        pytest.param(
            {"cgpu": "true", "cgpu.disable.isolation": "true"},
            False,
            "none",
            id="isolation switched off",
        ),
        pytest.param(
            {"cgpu": "false", "ack.node.gpu.schedule": "core_mem"},
            None,
            None,
            id="the stronger label wins",
        ),
        pytest.param(
            {"ack.node.gpu.schedule": "default", "gpushare": "true"},
            None,
            None,
            id="exclusive by name",
        ),
    ],
)
@pytest.mark.parametrize(
    "is_later", [False, True], ids=["from the beginning", "on a node of whole cards"]
)
def test_every_label_of_the_contract_makes_a_node_share(
    labels: dict[str, str], has_cores: bool | None, isolation: str | None, is_later: bool
) -> None:
    world = small_world(
        NodePool(
            name="gpu",
            cpu=16,
            memory="64Gi",
            gpu_model="Tesla T4",
            gpus=2,
            labels={} if is_later else labels,
        )
    )
    if is_later:
        world.cluster.mutate(
            NODES,
            None,
            "gpu-1",
            lambda node: {**node, "metadata": _labelled(node["metadata"], labels)},
        )
        live(world, 5)
    cores = {"gpu-core.percentage": ("200", "200")} if has_cores else {}
    wanted = (
        {"gpu": ("2", "2")}
        if has_cores is None
        else {"gpu-count": ("2", "2"), "gpu-mem": ("28", "28"), **cores}
    )
    assert offered(world, "gpu-1") == wanted
    node = world.cluster.get(NODES, None, "gpu-1")
    assert (
        node is not None
        and node["metadata"]["labels"].get("fairlead.io/gpu-isolation") == isolation
    )


def _labelled(metadata: dict[str, Any], labels: dict[str, str]) -> dict[str, Any]:
    return {**metadata, "labels": {**metadata["labels"], **labels}}


def test_a_part_of_a_cards_cores_comes_with_its_memory() -> None:
    world = small_world(
        NodePool(
            name="gpu",
            cpu=16,
            memory="64Gi",
            gpu_model="Tesla T4",
            gpus=1,
            labels={"ack.node.gpu.schedule": "core_mem"},
        )
    )
    for name, percent in (("a", 60), ("b", 30), ("c", 20)):
        limits = {names.GPU_MEMORY: "2", names.GPU_CORE: str(percent)}
        share(
            world,
            name,
            2,
            containers=[{"name": "main", "image": "pause:35", "resources": {"limits": limits}}],
        )
        live(world, 20)
    assert [phase(world, name) for name in "abc"] == ["Running", "Running", "Pending"]
    assert "Insufficient aliyun.com/gpu-core.percentage" in message(world, "c")


def test_a_terminating_pod_keeps_its_memory() -> None:
    world = small_world(T4)
    share(world, "old", 10, terminationGracePeriodSeconds=60, image="stubborn")
    live(world, 20)
    world.cluster.delete(PODS, NAMESPACE, "old")
    share(world, "new", 10)
    before = world.clock.now()
    while world.cluster.get(PODS, NAMESPACE, "old") is not None:
        assert phase(world, "new") == "Pending"
        assert world.step()
    assert world.clock.now() > before
    live(world, 90)
    assert phase(world, "new") == "Running"


# --- admission ------------------------------------------------------------------------------------


def test_a_pod_with_shared_memory_goes_to_fairleads_scheduler() -> None:
    world = small_world(V100S)
    share(world, "p", 4)
    share(world, "named", 4, schedulerName="volcano")
    world.cluster.create(make_pod("plain"))
    schedulers = {
        name: get_pod(world, name)["spec"]["schedulerName"] for name in ("p", "named", "plain")
    }
    assert schedulers == {
        "p": "fairlead-scheduler",
        "named": "volcano",
        "plain": "default-scheduler",
    }
    live(world, 20)
    assert [component for component, _ in reported(world, "p", "Scheduled")] == [
        "fairlead-scheduler"
    ]
    assert [component for component, _ in reported(world, "plain", "Scheduled")] == [
        "default-scheduler"
    ]


FORGED = {
    names.ANNOTATION_ALLOCATION: '{"main":[{"uuid":"GPU-x","index":0,"units":4,"mib":16130}]}'
}
DENIED = (
    "ValidatingAdmissionPolicy 'fairlead-gpu-grants' with binding 'fairlead-gpu-grants' denied "
    "request: only Fairlead writes the annotation fairlead.io/gpu-allocation"
)


def test_no_other_account_writes_grants() -> None:
    world = small_world(V100S)
    with pytest.raises(ApiStatus) as refused:
        share(world, "p", 4, metadata={"annotations": FORGED})
    status = refused.value
    assert (status.code, status.reason, status.message) == (
        403,
        "Forbidden",
        f'pods "p" is forbidden: {DENIED}',
    )
    assert status.details == {"name": "p", "kind": "pods", "causes": [{"message": DENIED}]}
    share(world, "p", 4)
    live(world, 20)
    bound = get_pod(world)
    for written in (FORGED, {}):
        with pytest.raises(ApiStatus, match="only Fairlead writes"):
            world.cluster.update(
                {**bound, "metadata": {**bound["metadata"], "annotations": written}}, "alice"
            )
    kept = {**bound["metadata"]["annotations"], "team": "a"}
    world.cluster.update({**bound, "metadata": {**bound["metadata"], "annotations": kept}}, "alice")
    assert get_pod(world)["metadata"]["annotations"]["team"] == "a"


def test_a_grant_that_is_damaged_while_its_pod_runs_is_written_again() -> None:
    world = small_world(T4)
    share(world, "p", 10)
    live(world, 30)
    before = get_pod(world)["metadata"]["annotations"]
    for damaged in ({**before, names.ANNOTATION_ALLOCATION: "{"}, {}):
        now = get_pod(world)
        world.cluster.update(
            {**now, "metadata": {**now["metadata"], "annotations": damaged}}, min(GRANT_WRITERS)
        )
        live(world, 5)
        assert grants(world, "p") == {"main": [(0, 10, 10770)]}
    share(world, "second", 10)
    live(world, 20)
    assert phase(world, "second") == "Pending", "the card was never free"


def test_a_binding_brings_no_forged_grant() -> None:
    world = small_world(V100S)
    share(world, "p", 4, schedulerName="volcano")
    binding = {"target": {"name": "shared-1"}, "metadata": {"annotations": FORGED}}
    with pytest.raises(
        ApiStatus,
        match=(
            r'pods "p" is forbidden: .* only Fairlead writes the annotation '
            r"fairlead.io/gpu-allocation"
        ),
    ):
        world.cluster.bind(NAMESPACE, "p", binding, "volcano")
    assert "nodeName" not in get_pod(world)["spec"]
    world.cluster.bind(NAMESPACE, "p", binding, sorted(GRANT_WRITERS)[0])
    assert get_pod(world)["spec"]["nodeName"] == "shared-1"


def test_a_template_with_a_forged_grant_makes_no_pods() -> None:
    world = small_world(V100S)
    template = make_pod("unused", gpu_memory=4)
    labels = {"app": "web"}
    spec = {
        "replicas": 1,
        "selector": {"matchLabels": labels},
        "template": {
            "metadata": {"labels": labels, "annotations": FORGED},
            "spec": {**template["spec"], "restartPolicy": "Always"},
        },
    }
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": NAMESPACE},
        "spec": spec,
    }
    world.cluster.create(deployment)
    live(world, 30)
    assert world.cluster.get(DEPLOYMENTS, NAMESPACE, "web") is not None
    assert world.cluster.list(PODS, NAMESPACE) == []


def test_a_world_without_an_extender_lets_shared_pods_wait_and_others_run() -> None:
    world = World(small_scenario(V100S), 1, EPOCH)
    share(world, "p", 4)
    world.cluster.create(make_pod("plain"))
    live(world, 30)
    assert (message(world), condition(get_pod(world), "PodScheduled")["reason"]) == (
        NO_EXTENDER,
        "SchedulerError",
    )
    assert phase(world, "plain") == "Running"
    assert reasons(world, "p") == ["FailedScheduling"]


def test_a_snapshot_of_the_world_knows_which_cards_an_operator_took_out() -> None:
    from fairlead.rules.sharing.ledger import ledger_of
    from fairlead_sim.world.snapshot import take_snapshot

    world = small_world(V100S)
    (node,) = [each["metadata"]["name"] for each in world.cluster.list(NODES)]
    metadata = {"name": f"unhealthy-gpu-{node}", "namespace": "kube-system"}
    world.cluster.create(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"gpus": "1"}}
    )
    world.cluster.create(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {**metadata, "namespace": NAMESPACE},
            "data": {"gpus": "0"},
        }
    )
    found = take_snapshot(world)
    assert (found.withheld, found.was_read("gpu-withheld")) == ({node: (1,)}, True)
    assert [card.trouble for card in ledger_of(found).nodes[node].cards] == [None, "unhealthy"]


def test_the_ledger_of_a_living_world_is_the_one_that_its_pods_give() -> None:
    from fairlead.rules.sharing.ledger import ledger_of
    from fairlead.run.hooks.sharing_hooks import sharing_hooks
    from fairlead_sim.scenario.file import load_scenario
    from fairlead_sim.scheduler.hooks import Hooks
    from fairlead_sim.store.cluster import StoredCluster
    from fairlead_sim.store.recorder import Recorder
    from fairlead_sim.world.snapshot import take_snapshot

    made: list[SharedGpus] = []

    def hooks(cluster: StoredCluster, recorder: Recorder) -> Hooks:
        filled = sharing_hooks(cluster, recorder)
        assert isinstance(filled.extender, SharedGpus)
        made.append(filled.extender)
        return filled

    world = World(load_scenario("default"), 3, EPOCH, hooks=hooks)
    for _ in range(6):
        live(world, 1200)
        again, ledger = ledger_of(take_snapshot(world)), made[0].ledger
        assert set(again.tenants) == set(ledger.tenants)
        assert any(tenant.grants for tenant in ledger.tenants.values())
        for name, account in again.nodes.items():
            assert [(card.key, card.used) for card in account.cards] == [
                (card.key, card.used) for card in ledger.nodes[name].cards
            ]
            assert all(card.used <= card.units for card in account.cards)
