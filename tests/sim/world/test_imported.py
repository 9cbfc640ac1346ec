"""A snapshot becomes a world with the same nodes, cards, pods
and messages, which then continues.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import msgspec
import pytest
from tests.sim.small_world import EPOCH, condition, live
from tests.sim.world.copies import Object, copy_of, imported

from fairlead.model.devices.gpu import GpuHolder, GpuReading
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.run.hooks.sharing_hooks import sharing_world
from fairlead.wire.kube.objects import WireNode, WirePod, parse_node, parse_pod
from fairlead_sim.objects.resources import DEPLOYMENTS, EVENTS, JOBS, NODES, PODS, REPLICA_SETS
from fairlead_sim.scenario.file import load_scenario
from fairlead_sim.schema.resource import ResourceKind
from fairlead_sim.world.snapshot import take_snapshot
from fairlead_sim.world.world import World


@pytest.fixture(scope="module")
def default() -> World:
    world = sharing_world(load_scenario("default"), 0, EPOCH)
    world.warm_up()
    return world


@pytest.fixture
def copied(default: World) -> World:
    return copy_of(default)


def standing(world: World) -> dict[str, Any]:
    return {
        pod["metadata"]["uid"]: (
            pod["metadata"]["name"],
            pod["spec"].get("nodeName"),
            pod["status"]["phase"],
            pod["status"].get("podIP"),
        )
        for pod in world.cluster.list(PODS)
    }


def holders(world: World) -> dict[str, list[str]]:
    names = [node["metadata"]["name"] for node in world.cluster.list(NODES)]
    return {
        f"{name}/{card.index}": sorted(hold.pod for hold in card.holds)
        for name in names
        for card in world.devices.cards(name)
    }


def test_nodes_pods_and_cards_are_the_same(default: World, copied: World) -> None:
    assert standing(copied) == standing(default)
    assert holders(copied) == holders(default)
    before, after = take_snapshot(default), take_snapshot(copied)
    assert after.nodes == before.nodes
    assert after.jobs == before.jobs
    assert after.quota == before.quota
    assert after.taken_at == before.taken_at, "everything is as old as it was"
    assert [pod.key for pod in after.pods] == [pod.key for pod in before.pods]


def test_nothing_is_made_anew_by_controllers_that_find_their_own(
    default: World, copied: World
) -> None:
    live(copied, 10)

    def names(world: World, ref: ResourceKind) -> list[str]:
        return [obj["metadata"]["name"] for obj in world.cluster.list(ref)]

    for ref in (DEPLOYMENTS, REPLICA_SETS, JOBS):
        assert names(copied, ref) == names(default, ref)
    failed = [
        event["message"]
        for event in copied.cluster.list(EVENTS)
        if event["reason"].startswith(("Failed", "Unexpected", "Invalid"))
    ]
    assert failed == []


@pytest.mark.long
def test_life_goes_on(copied: World) -> None:
    finished = sum(pod["status"]["phase"] == "Succeeded" for pod in copied.cluster.list(PODS))
    live(copied, 1200)
    assert (
        sum(pod["status"]["phase"] == "Succeeded" for pod in copied.cluster.list(PODS)) != finished
    )
    assert all(
        len(pods) <= 1
        for card, pods in holders(copied).items()
        if not card.startswith("gpu-shared")
    )


def test_a_drained_node_shows_what_would_happen(copied: World) -> None:
    def web_pods() -> list[Object]:
        return [
            pod
            for pod in copied.cluster.list(PODS)
            if owner_of(pod) == "ReplicaSet" and pod["status"]["phase"] == "Running"
        ]

    before = web_pods()
    name = Counter(pod["spec"]["nodeName"] for pod in before).most_common(1)[0][0]
    leaving = [pod for pod in before if pod["spec"]["nodeName"] == name]
    copied.cluster.mutate(
        NODES, None, name, lambda node: {**node, "spec": {**node["spec"], "unschedulable": True}}
    )
    for pod in leaving:
        copied.cluster.evict(pod["metadata"]["namespace"], pod["metadata"]["name"], {})
    live(copied, 300)
    assert not [pod for pod in web_pods() if pod["spec"]["nodeName"] == name]
    assert len([pod for pod in copied.cluster.list(PODS) if owner_of(pod) == "ReplicaSet"]) == len(
        before
    )


def owner_of(pod: Object) -> str:
    return str((pod["metadata"].get("ownerReferences") or [{}])[0].get("kind", ""))


def new_pod(name: str, gpus: int) -> Object:
    container = {
        "name": "main",
        "image": "pause:35",
        "resources": {"limits": {"nvidia.com/gpu": str(gpus)}},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [container]},
    }


# --- clusters with fewer facts --------------------------------------------------------------------


def a_node(
    name: str,
    capacity: dict[str, str],
    labels: dict[str, str] | None = None,
    allocatable: dict[str, str] | None = None,
) -> Object:
    host = {"cpu": "64", "memory": "512Gi", "pods": "110"}
    status = {
        "capacity": {**host, **capacity},
        "allocatable": {**host, **(allocatable or capacity)},
        "conditions": [
            {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-05T07:00:00Z"}
        ],
    }
    metadata = {
        "name": name,
        "uid": f"u-{name}",
        "labels": labels or {},
        "creationTimestamp": "2026-01-01T00:00:00Z",
    }
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": {}, "status": status}


def a_pod(
    name: str,
    node: str,
    limits: dict[str, str],
    *,
    phase: str = "Running",
    annotations: Object | None = None,
) -> Object:
    metadata: Object = {
        "name": name,
        "namespace": "default",
        "uid": f"u-{name}",
        "creationTimestamp": "2026-01-05T07:00:00Z",
    }
    if annotations:
        metadata["annotations"] = annotations
    state = {"running": {"startedAt": "2026-01-05T07:00:10Z"}}
    status = {
        "phase": phase,
        "startTime": "2026-01-05T07:00:05Z",
        "containerStatuses": [{"name": "main", "ready": True, "restartCount": 0, "state": state}],
    }
    spec: Object = {
        "containers": [{"name": "main", "image": "x:1", "resources": {"limits": limits}}],
        "nodeName": node,
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}


def world_of(*objects: Object, gpus: tuple[GpuReading, ...] = ()) -> World:
    def rows_of(kind: str, wire: type[Any], parse: Any) -> tuple[Any, ...]:
        found = [
            parse(msgspec.json.decode(msgspec.json.encode(obj), type=wire))
            for obj in objects
            if obj["kind"] == kind
        ]
        return tuple(sorted(found, key=lambda row: row.name))

    nodes, pods = rows_of("Node", WireNode, parse_node), rows_of("Pod", WirePod, parse_pod)
    namespace = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "default", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"},
    }
    return imported(
        [namespace, *objects], ClusterSnapshot(nodes=nodes, pods=pods, gpus=gpus, taken_at=EPOCH)
    )


def test_cards_follow_from_labels_where_no_inventory_is_reported() -> None:
    node = a_node(
        "g",
        {"nvidia.com/gpu": "4"},
        {"nvidia.com/gpu.product": "NVIDIA-L40S", "nvidia.com/gpu.memory": "46068"},
    )
    world = world_of(node)
    cards = world.devices.cards("g")
    assert [(card.model.name, card.model.memory_mib, card.is_shared) for card in cards] == [
        ("NVIDIA-L40S", 46068, False)
    ] * 4
    kept = world.cluster.get(NODES, None, "g")
    assert kept is not None and kept["status"] == node["status"]


def test_a_known_model_is_recognised_and_has_the_memory_that_the_cluster_reports() -> None:
    world = world_of(
        a_node("g", {"nvidia.com/gpu": "1"}, {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"})
    )
    card = world.devices.cards("g")[0]
    assert (card.model.name, card.model.memory_mib, card.model.nvlink_bytes > 0) == (
        "NVIDIA A100-SXM4-80GB",
        81319,
        True,
    )


def test_faulty_cards_are_those_without_holders() -> None:
    node = a_node("g", {"nvidia.com/gpu": "4"}, allocatable={"nvidia.com/gpu": "3"})
    reading = GpuReading("g", 3, "GPU-d", holders=(GpuHolder("default", "p", "main"),))
    world = world_of(node, a_pod("p", "g", {"nvidia.com/gpu": "1"}), gpus=(reading,))
    assert [card.is_healthy for card in world.devices.cards("g")] == [True, True, False, True]
    assert holders(world)["g/3"] == ["p"]
    assert world.devices.cards("g")[3].uuid == "GPU-d"


def test_whole_cards_without_a_word_on_which_get_the_lowest_free_ones() -> None:
    node = a_node("g", {"nvidia.com/gpu": "4"})
    seen = GpuReading("g", 0, "GPU-a", holders=(GpuHolder("default", "b", "main"),))
    world = world_of(
        node,
        a_pod("a", "g", {"nvidia.com/gpu": "2"}),
        a_pod("b", "g", {"nvidia.com/gpu": "1"}),
        gpus=(seen,),
    )
    assert holders(world) == {"g/0": ["b"], "g/1": ["a"], "g/2": ["a"], "g/3": []}


def test_new_pods_get_the_room_that_is_left_and_no_more() -> None:
    world = world_of(a_node("g", {"nvidia.com/gpu": "4"}), a_pod("a", "g", {"nvidia.com/gpu": "2"}))
    world.cluster.create(new_pod("fits", 2))
    live(world, 120)
    world.cluster.create(new_pod("late", 1))
    live(world, 10)
    assert holders(world) == {"g/0": ["a"], "g/1": ["a"], "g/2": ["fits"], "g/3": ["fits"]}
    late = world.cluster.get(PODS, "default", "late")
    assert late is not None and condition(late, "PodScheduled")["message"].startswith(
        "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."
    )


def test_a_waiting_pod_is_looked_at_by_the_scheduler_that_is_here() -> None:
    waits = a_pod("waits", "", {"nvidia.com/gpu": "5"}, phase="Pending")
    waits["status"] = {
        "phase": "Pending",
        "conditions": [{"type": "PodScheduled", "status": "False", "message": "other words"}],
    }
    world = world_of(a_node("g", {"nvidia.com/gpu": "4"}), waits)
    live(world, 10)
    found = world.cluster.get(PODS, "default", "waits")
    assert found is not None
    assert condition(found, "PodScheduled")["message"].startswith(
        "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."
    )


def waiting(reason: str, last: Object | None = None) -> Object:
    """A pod on its node whose container does not run."""
    found = a_pod("stuck", "n", {}, phase="Pending")
    found["spec"]["restartPolicy"] = "Always"
    state = {"waiting": {"reason": reason, "message": "as the real kubelet wrote"}}
    restarts = 4 if last else 0
    found["status"]["containerStatuses"] = [
        {"name": "main", "restartCount": restarts, "state": state, "lastState": last or {}}
    ]
    return found


@pytest.mark.parametrize(
    "reason", ["ImagePullBackOff", "CreateContainerConfigError", "InvalidImageName"]
)
def test_a_container_that_could_not_start_there_does_not_start_here(reason: str) -> None:
    world = world_of(a_node("n", {}), waiting(reason))
    live(world, 900)
    found = world.cluster.get(PODS, "default", "stuck")
    assert found is not None and found["status"]["phase"] == "Pending"
    assert found["status"]["containerStatuses"][0]["state"]["waiting"]["reason"].startswith(
        reason.removesuffix("BackOff")[:5]
    )


def test_a_container_that_was_being_made_starts() -> None:
    world = world_of(a_node("n", {}), waiting("ContainerCreating"))
    live(world, 120)
    assert world.cluster.list(PODS)[0]["status"]["phase"] == "Running"


def test_a_program_that_crashed_again_and_again_does_so_here() -> None:
    ended = {
        "exitCode": 3,
        "reason": "Error",
        "startedAt": "2026-01-05T07:59:00Z",
        "finishedAt": "2026-01-05T07:59:10Z",
    }
    world = world_of(a_node("n", {}), waiting("CrashLoopBackOff", {"terminated": ended}))
    live(world, 1800)
    status = world.cluster.list(PODS)[0]["status"]["containerStatuses"][0]
    assert 7 <= status["restartCount"] <= 12
    assert status["lastState"]["terminated"]["exitCode"] == 3


def test_pods_on_a_node_with_too_few_cards_keep_running() -> None:
    world = world_of(
        a_node("g", {"nvidia.com/gpu": "1"}),
        a_pod("a", "g", {"nvidia.com/gpu": "1"}),
        a_pod("b", "g", {"nvidia.com/gpu": "1"}),
    )
    live(world, 600)
    assert [pod["status"]["phase"] for pod in world.cluster.list(PODS)] == ["Running", "Running"]


def test_shares_in_the_reference_s_words_stand_on_their_cards_and_count() -> None:
    node = a_node("s", {"aliyun.com/gpu-mem": "30", "aliyun.com/gpu-count": "2"}, {"cgpu": "true"})
    grant = {"scheduler.framework.gpushare.allocation": '{"0":{"1":4}}'}
    world = world_of(node, a_pod("p", "s", {"aliyun.com/gpu-mem": "4"}, annotations=grant))
    assert [(card.model.units, card.is_shared) for card in world.devices.cards("s")] == [
        (15, True),
        (15, True),
    ]
    assert holders(world) == {"s/0": [], "s/1": ["p"]}
    found = world.cluster.get(PODS, "default", "p")
    assert found is not None
    own = json.loads(found["metadata"]["annotations"]["fairlead.io/gpu-allocation"])
    assert own["main"][0] | {"uuid": ""} == {
        "uuid": "",
        "index": 1,
        "units": 4,
        "mib": 4096,
        "core": 0,
    }
    assert own["main"][0]["uuid"] == world.devices.cards("s")[1].uuid


def test_a_node_that_shares_without_the_label_goes_on_sharing() -> None:
    world = world_of(
        a_node("s", {"aliyun.com/gpu-mem": "30", "aliyun.com/gpu-count": "2"}, {"gpushare": "true"})
    )
    live(world, 900)
    node = world.cluster.get(NODES, None, "s")
    assert node is not None and node["status"]["capacity"]["aliyun.com/gpu-mem"] == "30"


def test_a_node_that_was_not_ready_stays_so_and_its_pods_as_they_are() -> None:
    node = a_node("n", {})
    node["status"]["conditions"][0]["status"] = "Unknown"
    going = a_pod("going", "n", {})
    going["metadata"] |= {
        "deletionTimestamp": "2026-01-05T07:59:00Z",
        "deletionGracePeriodSeconds": 30,
    }
    world = world_of(node, going)
    live(world, 200)
    kept = world.cluster.get(NODES, None, "n")
    assert kept is not None and condition(kept, "Ready")["status"] == "Unknown"
    assert world.cluster.get(PODS, "default", "going") is not None


def test_a_pod_in_its_grace_has_what_is_left_of_it() -> None:
    going = a_pod("going", "n", {})
    going["metadata"] |= {
        "deletionTimestamp": "2026-01-05T08:10:00Z",
        "deletionGracePeriodSeconds": 3600,
    }
    world = world_of(a_node("n", {}), going)
    live(world, 590)
    assert world.cluster.get(PODS, "default", "going") is not None
    live(world, 20)
    assert world.cluster.get(PODS, "default", "going") is None


def test_a_simulated_cluster_ahead_of_its_snapshots_date_does_not_run_backwards() -> None:
    early = a_pod("early", "n", {})
    early["metadata"]["creationTimestamp"] = "2026-02-01T00:00:00Z"
    world = world_of(a_node("n", {}), early)
    assert world.clock.now() > EPOCH + 20 * 86400
