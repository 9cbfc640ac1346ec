"""A world small enough to reason about: one plain node, one with four whole cards, one with two
shared ones. Nothing happens in it by itself.
"""

from __future__ import annotations

from typing import Any

from fairlead.run.hooks.sharing_hooks import sharing_world
from fairlead_sim.objects.resources import EVENTS, PODS
from fairlead_sim.scenario.scenario import NodePool, Scenario, Team
from fairlead_sim.schema.resource import ResourceKind
from fairlead_sim.world.world import World

Object = dict[str, Any]

EPOCH = 1_767_600_000.0  # 2026-01-05T08:00:00Z
NAMESPACE = "work"

CPU_POOL = NodePool(name="cpu", cpu=16, memory="64Gi")
GPU_POOL = NodePool(name="gpu", cpu=32, memory="128Gi", gpu_model="Tesla V100-SXM2-16GB", gpus=4)
SHARED_POOL = NodePool(
    name="shared", cpu=32, memory="128Gi", gpu_model="Tesla V100-SXM2-16GB", gpus=2, shared=True
)


def small_scenario(*pools: NodePool, **more: Any) -> Scenario:
    return Scenario(
        title="test",
        node_pools=pools or (CPU_POOL, GPU_POOL, SHARED_POOL),
        teams=(Team("team", (NAMESPACE,)),),
        **more,
    )


def small_world(*pools: NodePool, seed: int = 1, **more: Any) -> World:
    return sharing_world(small_scenario(*pools, **more), seed, EPOCH)


def live(world: World, seconds: float) -> None:
    world.run_until(world.clock.now() + seconds)


def container(
    image: str = "pause:35", *, gpus: int = 0, gpu_memory: int = 0, name: str = "main", **more: Any
) -> Object:
    limits = {"cpu": "1", "memory": "1Gi"}
    limits |= {"nvidia.com/gpu": str(gpus)} if gpus else {}
    limits |= {"aliyun.com/gpu-mem": str(gpu_memory)} if gpu_memory else {}
    return {"name": name, "image": image, "resources": {"limits": limits}, **more}


def pod(
    name: str = "p", image: str = "pause:35", *, gpus: int = 0, gpu_memory: int = 0, **spec: Any
) -> Object:
    containers = [container(image, gpus=gpus, gpu_memory=gpu_memory)]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"restartPolicy": "Never", "containers": containers, **spec},
    }


def get(world: World, ref: ResourceKind, name: str) -> Object:
    found = world.cluster.get(ref, NAMESPACE, name)
    assert found is not None, f"{ref} {name} is gone"
    return found


def get_pod(world: World, name: str = "p") -> Object:
    return get(world, PODS, name)


def pods(world: World) -> list[Object]:
    return world.cluster.list(PODS, NAMESPACE)


def phase(world: World, name: str = "p") -> str:
    return str(get_pod(world, name)["status"]["phase"])


def condition(obj: Object, kind: str) -> Object:
    return next(
        (item for item in obj.get("status", {}).get("conditions") or () if item["type"] == kind), {}
    )


def states(obj: Object) -> dict[str, str]:
    """Condition type -> status."""
    return {item["type"]: item["status"] for item in obj.get("status", {}).get("conditions") or ()}


def reasons(world: World, about: str) -> list[str]:
    """Reasons of the events about an object, oldest first."""
    events = [
        event
        for event in world.cluster.list(EVENTS, NAMESPACE)
        if event["involvedObject"]["name"] == about
    ]
    return [
        event["reason"]
        for event in sorted(events, key=lambda event: int(event["metadata"]["resourceVersion"]))
    ]
