"""A simulated world in which pods of every sort run, for what is executed in their containers."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace
from tests.sim.small_world import GPU_POOL, SHARED_POOL, container, live, pod, small_world

from fairlead_sim.scenario.scenario import NodePool
from fairlead_sim.world.world import World

Object = dict[str, Any]

MIG_POOL = NodePool(
    name="mig", cpu=32, memory="128Gi", gpu_model="NVIDIA H200", gpus=1, mig=("3g.71gb",) * 2
)


def world_with_pods(**labels: str) -> World:
    """Pods `plain`, `whole` (two GPUs), `half` and `other` (shares of one), `pair` (two
    containers), `starts` (in its init container), `crashes`, `missing`, `mig`.

    `labels`: of the node with shared GPUs.
    """
    shared = replace(SHARED_POOL, gpus=1, labels=labels)
    world = small_world(GPU_POOL, shared, MIG_POOL)
    instance = {"nvidia.com/mig-3g.71gb": "1"}
    for made in (
        pod("plain", containers=[container(env=_ENV)]),
        pod("whole", image="train:9h", gpus=2),
        pod("half", image="cuda-malloc:3G", gpu_memory=4),
        pod("other", image="cuda-malloc:3G", gpu_memory=4),
        pod("pair", containers=[container(), container(name="beside")]),
        pod("starts", initContainers=[container("train:9h", name="setup")]),
        pod("crashes", image="fail:1s", restartPolicy="Always"),
        pod("missing", image="missing:x"),
        pod("mig", containers=[container() | {"resources": {"limits": instance}}]),
    ):
        world.cluster.create(made)
    live(world, 150)
    return world


_ENV = [
    {"name": "GREETING", "value": "hello you"},
    {"name": "EMPTY"},
    {"name": "MY_NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
    {"name": "MY_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
]
