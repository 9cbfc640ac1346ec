"""A small cluster for which every family of the cluster exporter has values."""

from __future__ import annotations

from tests.apps.fakes import EPOCH

from fairlead.model.devices.gpu import GpuHolder, GpuReading, GpuSlot, Grant
from fairlead.model.jobs.job import Job, Role
from fairlead.model.node import Condition, Node
from fairlead.model.pod import Container, ContainerStatus, Owner, Pod
from fairlead.model.quota.tree import QuotaNode
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.model.source import Source
from fairlead.wire import names

GIB = 1 << 30
GPU = {names.NVIDIA_GPU: 1}
READY = (Condition("Ready", "True"),)


def company() -> ClusterSnapshot:
    """Three GPU nodes (one shared, one not ready), jobs in five states, a quota tree, and readings
    of all nodes but one.
    """
    return ClusterSnapshot(
        nodes=_nodes(),
        pods=tuple(sorted(_pods(), key=lambda pod: (pod.namespace, pod.name))),
        jobs=_jobs(),
        quota=_quota(),
        sources={
            name: Source(name, good_at=EPOCH - 1)
            for name in ("nodes", "pods", "mpijobs", "tfjobs", "pytorchjobs")
        },
        taken_at=EPOCH,
        version=1,
    )


def readings() -> tuple[GpuReading, ...]:
    bert = GpuHolder(
        "vision",
        "bert-worker-0",
        "mpi",
        memory_used_mib=12000,
        memory_limit_mib=15360,
        utilization_ratio=0.9,
    )
    shares = tuple(
        GpuHolder(
            "notebooks",
            f"app-{i}",
            "main",
            "share",
            memory_used_mib=3193,
            memory_limit_mib=4301,
            utilization_ratio=0.25,
        )
        for i in (1, 2)
    )
    return (
        GpuReading(
            "gpu-1",
            0,
            "GPU-gpu-1-0",
            "Tesla T4",
            15360,
            12100,
            0.9,
            healthy=True,
            holders=(bert,),
        ),
        GpuReading("gpu-1", 1, "GPU-gpu-1-1", "Tesla T4", 15360, 3, 0.0, healthy=True),
        GpuReading(
            "gpu-s",
            0,
            "GPU-gpu-s-0",
            "Tesla V100",
            16384,
            6396,
            0.5,
            healthy=True,
            holders=shares,
        ),
        GpuReading(
            "gpu-s", 1, "GPU-gpu-s-1", "Tesla V100", 16384, 4, 0.0, healthy=False, last_xid=79
        ),
    )


def _nodes() -> tuple[Node, ...]:
    slots = tuple(
        GpuSlot(index, f"GPU-gpu-s-{index}", index, "Tesla V100", 16130, 15, mode="shared")
        for index in (0, 1)
    )
    return (
        Node("cpu-1", capacity={"cpu": 64000}, conditions=READY),
        Node(
            "gpu-1",
            labels={"node-role.kubernetes.io/worker": "", "nvidia.com/gpu.product": "Tesla-T4"},
            capacity={names.NVIDIA_GPU: 2},
            allocatable={names.NVIDIA_GPU: 2},
            addresses=(("InternalIP", "10.0.0.1"),),
            conditions=READY,
            unschedulable=True,
            card_memory_mib=15360,
        ),
        Node(
            "gpu-2",
            capacity={names.NVIDIA_GPU: 4},
            allocatable={names.NVIDIA_GPU: 3},
            addresses=(("InternalIP", "10.0.0.2"),),
            conditions=(Condition("Ready", "Unknown"),),
        ),
        Node(
            "gpu-s",
            capacity={names.GPU_MEMORY: 30, names.GPU_COUNT: 2},
            allocatable={names.GPU_MEMORY: 15, names.GPU_COUNT: 2},
            addresses=(("InternalIP", "10.0.0.3"),),
            conditions=READY,
            gpus=slots,
        ),
    )


def _pods() -> list[Pod]:
    bert, limits = (Owner("MPIJob", "bert", "uid-bert", True),), {names.GPU_MEMORY: 4}
    apps = [
        _pod(
            "notebooks",
            f"app-{i}",
            "gpu-s",
            Container("main", requests={**limits, "cpu": 1500, "memory": 2 * GIB}, limits=limits),
            grants={"main": (Grant("GPU-gpu-s-0", 0, 4, 4301),)},
            owners=(Owner("ReplicaSet", "app", "uid-app", True),),
        )
        for i in (1, 2)
    ]
    return [
        *apps,
        _pod(
            "vision",
            "bert-launcher-x",
            "cpu-1",
            Container("mpi", requests={"cpu": 500}),
            owners=bert,
            labels=_labels("bert", "launcher"),
        ),
        _pod(
            "vision",
            "bert-worker-0",
            "gpu-1",
            Container("mpi", requests=GPU, limits=GPU),
            owners=bert,
            labels=_labels("bert", "worker"),
        ),
        _pod(
            "vision",
            "crash",
            "gpu-2",
            Container("main", requests=GPU, limits=GPU),
            statuses=(
                ContainerStatus("main", restarts=7, state="waiting", reason="CrashLoopBackOff"),
            ),
            owners=(),
        ),
        _pod(
            "vision",
            "waits-worker-0",
            "",
            Container("mpi", requests={**GPU, "cpu": 4000}, limits=GPU),
            phase="Pending",
            labels=_labels("waits", "worker"),
        ),
    ]


def _pod(namespace: str, name: str, node: str, container: Container, **more: object) -> Pod:
    given = {
        "phase": "Running",
        "created_at": EPOCH - 900,
        "started_at": EPOCH - 880 if node else None,
        **more,
    }
    return Pod(namespace, name, uid=f"uid-{name}", node=node, containers=(container,), **given)  # type: ignore[arg-type]


def _labels(job: str, role: str) -> dict[str, str]:
    return {names.LABEL_JOB_NAME: job, names.LABEL_JOB_ROLE: role, names.LABEL_REPLICA_TYPE: role}


def _jobs() -> tuple[Job, ...]:
    roles = (Role("launcher", 1), Role("worker", 1, limits=GPU))
    started = {"created_at": EPOCH - 900, "started_at": EPOCH - 890}
    return (
        _job(
            "bert",
            roles,
            Condition("Created", "True"),
            Condition("Running", "True", at=EPOCH - 860),
            **started,
        ),
        _job(
            "done",
            roles,
            Condition("Running", "False"),
            Condition("Succeeded", "True"),
            **started,
            finished_at=EPOCH - 100,
        ),
        _job("failed", roles, Condition("Failed", "True"), **started, finished_at=EPOCH - 500),
        _job("sleeps", roles, Condition("Suspended", "True"), created_at=EPOCH - 300),
        _job(
            "waits",
            (Role("worker", 1, limits=GPU),),
            Condition("Created", "True"),
            Condition("Running", "True"),
            **started,
        ),
    )


def _job(name: str, roles: tuple[Role, ...], *conditions: Condition, **more: float) -> Job:
    return Job(
        "mpijob",
        "MPIJob",
        "kubeflow.org/v2beta1",
        "vision",
        name,
        uid=f"uid-{name}",
        roles=roles,
        conditions=conditions,
        **more,
    )  # type: ignore[arg-type]


def _quota() -> QuotaNode:
    vision = QuotaNode(
        "root.vision",
        "root.vision",
        "root",
        min={names.NVIDIA_GPU: 2, "cpu": 500},
        max={names.NVIDIA_GPU: 4},
        namespaces=("vision",),
    )
    rest = QuotaNode(
        "root.rest",
        "root.rest",
        "root",
        max={"memory": 64 * GIB},
        namespaces=("notebooks", "empty"),
    )
    whole = {names.NVIDIA_GPU: 6, "cpu": 128000, "memory": 512 * GIB, names.GPU_MEMORY: 30}
    return QuotaNode("root", "root", min=whole, max=whole, children=(vision, rest))
