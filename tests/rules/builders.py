"""Builders of small clusters for the tests of rules: a node, a pod, a job, a reading. Each takes
what a test specifies and has defaults for the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fairlead.model.devices.gpu import GpuHolder, GpuReading, GpuSlot, Grant
from fairlead.model.jobs.job import Job, Role
from fairlead.model.node import Condition, Node
from fairlead.model.pod import Container, Owner, Pod
from fairlead.model.resources import GPU_COUNT, GPU_MEMORY, NVIDIA_GPU, Amounts
from fairlead.model.snapshot import ClusterSnapshot

READY = Condition("Ready", "True")


def exclusive_node(
    name: str = "n1",
    gpus: int = 4,
    *,
    healthy: int | None = None,
    card_mib: int | None = 15360,
    **more: object,
) -> Node:
    """A node of whole cards, of which `healthy` are allocatable."""
    return Node(
        name,
        capacity={NVIDIA_GPU: gpus},
        allocatable={NVIDIA_GPU: gpus if healthy is None else healthy},
        conditions=(READY,),
        card_memory_mib=card_mib,
        **more,  # type: ignore[arg-type]
    )


def shared_node(
    name: str = "s1",
    units: Sequence[int] = (15, 15),
    mib: int = 16130,
    *,
    allocatable: int | None = None,
) -> Node:
    """A node of shared cards with an inventory, as the node agent writes it."""
    slots = tuple(
        GpuSlot(index, f"GPU-{name}-{index}", index, "Tesla V100", mib, each, mode="shared")
        for index, each in enumerate(units)
    )
    return Node(
        name,
        capacity={GPU_MEMORY: sum(units), GPU_COUNT: len(units)},
        allocatable={
            GPU_MEMORY: sum(units) if allocatable is None else allocatable,
            GPU_COUNT: len(units),
        },
        conditions=(READY,),
        gpus=slots,
    )


def pod(
    name: str, node: str = "", *, phase: str = "Running", namespace: str = "default", **more: object
) -> Pod:
    return Pod(namespace, name, uid=f"uid-{name}", node=node, phase=phase, **more)  # type: ignore[arg-type]


def gpu_pod(name: str, node: str = "n1", gpus: int = 1, **more: object) -> Pod:
    limits = {NVIDIA_GPU: gpus}
    return pod(name, node, containers=(Container("main", requests=limits, limits=limits),), **more)  # type: ignore[arg-type]


def sharing_pod(
    name: str,
    node: str = "s1",
    units: int = 4,
    card: int | None = 0,
    mib: int | None = None,
    **more: object,
) -> Pod:
    """A pod that requests gpu-mem; with `card` None it has no usable annotation."""
    limits = {GPU_MEMORY: units}
    grants: Mapping[str, tuple[Grant, ...]] = (
        {} if card is None else {"main": (Grant(f"GPU-{node}-{card}", card, units, mib),)}
    )
    return pod(
        name,
        node,
        containers=(Container("main", requests=limits, limits=limits),),
        grants=grants,
        **more,
    )  # type: ignore[arg-type]


def reading(
    node: str,
    index: int,
    *,
    used: float | None = 0,
    util: float | None = 0,
    total: float | None = 15360,
    **more: object,
) -> GpuReading:
    return GpuReading(
        node,
        index,
        f"GPU-{node}-{index}",
        "Tesla T4",
        memory_total_mib=total,
        memory_used_mib=used,
        utilization_ratio=util,
        **more,  # type: ignore[arg-type]
    )


def holder(name: str, *, mode: str = "exclusive", **more: object) -> GpuHolder:
    return GpuHolder("default", name, "main", mode, **more)  # type: ignore[arg-type]


def snapshot(
    nodes: Sequence[Node] = (),
    pods: Sequence[Pod] = (),
    gpus: Sequence[GpuReading] = (),
    **more: object,
) -> ClusterSnapshot:
    return ClusterSnapshot(nodes=tuple(nodes), pods=tuple(pods), **more).with_gpus(gpus)  # type: ignore[arg-type]


def conditions(*types: str, at: float | None = None) -> tuple[Condition, ...]:
    """Conditions that are true, in this order; `-Running` is a condition that is False."""
    return tuple(
        Condition(each.removeprefix("-"), "False" if each.startswith("-") else "True", at=at)
        for each in types
    )


def job(name: str = "j", *types: str, roles: Sequence[Role] = (), **more: object) -> Job:
    return Job(
        "mpijob",
        "MPIJob",
        "kubeflow.org/v2beta1",
        "default",
        name,
        uid=f"job-{name}",
        conditions=conditions(*types),
        roles=tuple(roles),
        **more,  # type: ignore[arg-type]
    )


def owned_by(of: Job) -> tuple[Owner, ...]:
    return (Owner(of.kind, of.name, of.uid, True),)


def asking(**amounts: int) -> Amounts:
    """Amounts of resources. Keyword arguments spell resource names with underscores: `nvidia_gpu`
    is `nvidia.com/gpu`.
    """
    spelt = {"nvidia_gpu": NVIDIA_GPU, "gpu_mem": GPU_MEMORY}
    return {spelt.get(name, name): amount for name, amount in amounts.items()}
