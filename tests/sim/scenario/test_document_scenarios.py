"""The worlds of the five documents have what the documents print, and the documents' commands work
in them.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from tests.sim.small_world import EPOCH, condition, live, pod

from fairlead.run.hooks.sharing_hooks import sharing_world
from fairlead_sim.objects.resources import (
    DAEMON_SETS,
    EVENTS,
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    STATEFUL_SETS,
)
from fairlead_sim.scenario.file import load_scenario
from fairlead_sim.world.world import World

Object = dict[str, Any]


def world_of(number: int) -> World:
    world = sharing_world(load_scenario(f"documents-{number:03}"), 0, EPOCH)
    world.warm_up()
    return world


@cache
def looked_at(number: int) -> World:
    """A world for tests that only read."""
    return world_of(number)


def nodes(world: World) -> dict[str, Object]:
    return {node["metadata"]["name"]: node for node in world.cluster.list(NODES)}


def offers(world: World, resource: str) -> dict[str, str]:
    found = {
        name: node["status"]["allocatable"].get(resource, "") for name, node in nodes(world).items()
    }
    return {name: amount for name, amount in found.items() if amount}


def address(node: Object) -> str:
    return str(node["status"]["addresses"][0]["address"])


def default_pods(world: World) -> dict[str, Object]:
    return {item["metadata"]["name"]: item for item in world.cluster.list(PODS, "default")}


def workload(
    kind: str, name: str, image: str, limits: dict[str, Any], replicas: int, **more: Any
) -> Object:
    labels = {"app": name}
    template = {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": name, "image": image, "resources": {"limits": limits}}]},
    }
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template, **more}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "default", "labels": labels},
        "spec": spec,
    }


@pytest.mark.parametrize("number", range(5))
def test_it_is_ready_and_the_reader_makes_the_rest(number: int) -> None:
    world = looked_at(number)
    assert all(condition(node, "Ready")["status"] == "True" for node in nodes(world).values())
    assert default_pods(world) == {}
    made_by_reader = {"demo-ns", "namespace1", "namespace2", "namespace3", "namespace4"}
    assert not made_by_reader & {
        item["metadata"]["name"] for item in world.cluster.list(NAMESPACES)
    }


def test_000_two_gpu_nodes_two_cards() -> None:
    world = looked_at(0)
    assert sorted(offers(world, "nvidia.com/gpu").values()) == ["1", "1"]
    assert "192.168.1.151" in {
        address(nodes(world)[name]) for name in offers(world, "nvidia.com/gpu")
    }


def test_001_one_v100_whole_and_then_shared_as_the_label_requests() -> None:
    world = world_of(1)
    (name,) = offers(world, "nvidia.com/gpu")
    assert (name, address(nodes(world)[name])) == ("cn-hangzhou.192.168.2.167", "192.168.2.167")
    image = "registry.cn-shanghai.aliyuncs.com/tensorflow-samples/cuda-malloc"
    world.cluster.create(
        workload(
            "StatefulSet",
            "app-3g-v1",
            f"{image}:3G",
            {"nvidia.com/gpu": 1},
            1,
            serviceName="app-3g-v1",
            podManagementPolicy="Parallel",
        )
    )
    live(world, 90)
    assert default_pods(world)["app-3g-v1-0"]["status"]["phase"] == "Running"
    (sample,) = world.devices.sample()
    assert [process.memory_used_bytes >> 20 for process in sample.processes] == [3193]
    world.cluster.delete(world.cluster.served("apps/v1", "StatefulSet"), "default", "app-3g-v1")  # type: ignore[arg-type]
    live(world, 40)

    def share(node: Object) -> Object:
        return {
            **node,
            "metadata": {
                **node["metadata"],
                "labels": {**node["metadata"]["labels"], "cgpu": "true"},
            },
        }

    world.cluster.mutate(NODES, None, name, share)
    assert offers(world, "nvidia.com/gpu") == {}
    assert offers(world, "aliyun.com/gpu-mem") == {name: "15"}
    shares = {"aliyun.com/gpu-mem": 4}
    world.cluster.create(
        workload(
            "StatefulSet", "app-3g-v1", f"{image}:3G", shares, 2, podManagementPolicy="Parallel"
        )
    )
    live(world, 60)
    world.cluster.create(
        workload(
            "StatefulSet", "app-6g-v1", f"{image}:6G", shares, 1, podManagementPolicy="Parallel"
        )
    )
    live(world, 195)
    assert [world.devices.cards(name)[0].holds[index].limit_mib for index in (0, 1)] == [4301, 4301]
    broken = default_pods(world)["app-6g-v1-0"]["status"]["containerStatuses"][0]
    assert broken["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    assert {default_pods(world)[f"app-3g-v1-{index}"]["status"]["phase"] for index in (0, 1)} == {
        "Running"
    }
    lines = world.logs.lines("default", "app-6g-v1-0", "app-6g-v1", False) or ()
    message = (
        'CUDA error at cgpu_cuda_malloc.cu:119 code=2(cudaErrorMemoryAllocation) "cudaMalloc( '
        '(void**)&dev_c, malloc_size)"'
    )
    assert [line for _, line in lines] == [message]


def test_002_the_pods_that_the_document_lists_are_there() -> None:
    world = world_of(2)
    (node,) = nodes(world).values()
    assert (node["metadata"]["name"], address(node)) == ("ip-172-31-27-93", "172.31.27.93")
    listed = {
        (item["metadata"]["namespace"], item["metadata"]["name"]): item
        for item in world.cluster.list(PODS)
    }
    assert len(listed) == 16
    assert {item["status"]["phase"] for item in listed.values()} == {"Running"}
    assert ("kube-system", "nvidia-device-plugin-1602308324-jg842") in listed
    prometheus = listed["prometheus", "prometheus-kube-prometheus-stack-1602-prometheus-0"]
    assert len(prometheus["status"]["containerStatuses"]) == 3
    tester = pod(
        "dcgmproftester", "nvidia/samples:dcgmproftester-2.0.10-cuda11.0-ubuntu18.04", gpus=1
    )
    tester["metadata"]["namespace"] = "default"
    tester["spec"]["containers"][0]["args"] = ["--no-dcgm-validation", "-t 1004", "-d 600"]
    world.cluster.create(tester)
    live(world, 300)
    assert default_pods(world)["dcgmproftester"]["status"]["phase"] == "Running"
    (sample,) = world.devices.sample()
    assert sample.model == "Tesla T4"
    assert sample.fields["DCGM_FI_DEV_GPU_UTIL"] > 50


def test_003_six_nodes_one_whole_t4_and_one_of_14_units() -> None:
    world = world_of(3)
    assert len(nodes(world)) == 6
    assert {node["status"]["nodeInfo"]["kubeletVersion"] for node in nodes(world).values()} == {
        "v1.16.6-aliyun.1"
    }
    masters = [
        name
        for name, node in nodes(world).items()
        if "node-role.kubernetes.io/master" in node["metadata"]["labels"]
    ]
    assert masters == [f"cn-zhangjiakou.192.168.{rest}" for rest in ("0.138", "1.112", "3.115")]
    shared = "cn-zhangjiakou.192.168.3.184"
    assert offers(world, "nvidia.com/gpu") == {"cn-zhangjiakou.192.168.3.189": "1"}
    assert offers(world, "aliyun.com/gpu-mem") == {shared: "14"}
    image = "tensorflow/tensorflow:1.4.1-gpu-py3"
    world.cluster.create(workload("Deployment", "tf-notebook-gpu", image, {"nvidia.com/gpu": 1}, 2))
    live(world, 90)
    waiting = next(
        item for item in default_pods(world).values() if not item["spec"].get("nodeName")
    )
    message = condition(waiting, "PodScheduled")["message"]
    assert message.startswith("0/6 nodes are available: 6 Insufficient nvidia.com/gpu. ")
    for name in ("tf-notebook", "tf-notebook-2", "tf-notebook-3"):
        world.cluster.create(workload("Deployment", name, image, {"aliyun.com/gpu-mem": 4}, 1))
    live(world, 90)
    holds = world.devices.cards(shared)[0].holds
    assert len(holds) == 3
    assert {item["spec"].get("nodeName") for item in default_pods(world).values()} == {
        None,
        shared,
        "cn-zhangjiakou.192.168.3.189",
    }


def test_004_room_for_forty_cores_and_a_bound_dataset() -> None:
    world = world_of(4)
    world.cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "demo-ns"}})
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "fashion-demo-pv"},
        "spec": {
            "accessModes": ["ReadWriteMany"],
            "capacity": {"storage": "10Gi"},
            "storageClassName": "oss",
            "csi": {"driver": "ossplugin"},
        },
    }
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "fashion-demo-pvc", "namespace": "demo-ns"},
        "spec": {
            "accessModes": ["ReadWriteMany"],
            "resources": {"requests": {"storage": "10Gi"}},
            "selector": {"matchLabels": {"alicloud-pvname": "fashion-demo-pv"}},
            "storageClassName": "oss",
            "volumeName": "fashion-demo-pv",
        },
    }
    world.cluster.create(volume)
    world.cluster.create(claim)
    live(world, 2)
    (bound,), (reported,) = (
        world.cluster.list(PERSISTENT_VOLUMES),
        world.cluster.list(PERSISTENT_VOLUME_CLAIMS),
    )
    assert (bound["status"]["phase"], reported["status"]["phase"]) == ("Bound", "Bound")
    assert (bound["spec"]["claimRef"]["name"], reported["status"]["capacity"]) == (
        "fashion-demo-pvc",
        {"storage": "10Gi"},
    )
    for number in (1, 2):
        world.cluster.create(workload("Deployment", f"nginx{number}", "nginx", {"cpu": 5}, 4))
    live(world, 120)
    assert sum(item["status"]["phase"] == "Running" for item in default_pods(world).values()) == 8
    assert world.cluster.list(DAEMON_SETS) == []
    world.cluster.delete(PERSISTENT_VOLUME_CLAIMS, "demo-ns", "fashion-demo-pvc")
    live(world, 2)
    assert world.cluster.list(PERSISTENT_VOLUMES)[0]["status"]["phase"] == "Released"


def test_001_in_printed_order_the_node_shows_for_which_mode_its_card_drains_and_its_end() -> None:
    world, name = world_of(1), "cn-hangzhou.192.168.2.167"
    world.cluster.create(
        workload(
            "StatefulSet",
            "app-3g-v1",
            "cuda-malloc:3G",
            {"nvidia.com/gpu": 1},
            1,
            serviceName="app-3g-v1",
        )
    )
    live(world, 120)

    def reported() -> list[tuple[str, str]]:
        found = [
            event
            for event in world.cluster.list(EVENTS, "default")
            if event["involvedObject"]["name"] == name
        ]
        return [
            (event["reason"], event["message"])
            for event in found
            if event["source"]["component"] == "fairlead-device-plugin"
        ]

    labels = {"metadata": {"labels": {"cgpu": "true"}}}
    world.cluster.merge_patch(NODES, None, name, labels)
    live(world, 10)
    waits = (
        "GPU 0 draining from exclusive use: held by default/app-3g-v1-0; shared once no such pod "
        "is left"
    )
    assert reported() == [("GPUDraining", waits)]
    world.cluster.delete(STATEFUL_SETS, "default", "app-3g-v1", propagation="Background")
    live(world, 60)
    assert reported() == [("GPUDraining", waits), ("GPUModeChanged", "all GPUs are shared now")]
    assert offers(world, "aliyun.com/gpu-mem")[name] == "15"


def test_001_an_unused_card_changes_its_mode_without_a_message() -> None:
    world, name = world_of(1), "cn-hangzhou.192.168.2.167"
    world.cluster.merge_patch(NODES, None, name, {"metadata": {"labels": {"cgpu": "true"}}})
    live(world, 10)
    assert not [
        event
        for event in world.cluster.list(EVENTS, "default")
        if event["reason"].startswith("GPU")
    ]
    assert offers(world, "aliyun.com/gpu-mem")[name] == "15"
