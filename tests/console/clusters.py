"""Small clusters for the console's tests: one builder per kind of object, with defaults."""

from __future__ import annotations

from collections.abc import Sequence

from fairlead.model.devices.gpu import GpuHolder, GpuReading, GpuSlot, Grant
from fairlead.model.jobs.job import Job, Role
from fairlead.model.node import Condition, Node
from fairlead.model.pod import Container, Owner, Pod
from fairlead.model.quota.tree import QuotaNode
from fairlead.model.resources import Amounts
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.model.source import Source

EPOCH = 1_767_600_000.0
"""2026-01-05T08:00:00Z"""
CARD_MIB = 81_920
GATED = ("fairlead.io/quota",)
"""The gates of a pod that waits for quota."""


def gpu_node(
    name: str = "gpu-1",
    gpus: int = 4,
    *,
    ready: str = "True",
    labels: dict[str, str] | None = None,
    cordoned: bool = False,
) -> Node:
    """A node whose GPUs are given as a whole."""
    return Node(
        name,
        uid=f"uid-{name}",
        labels={"zone": "a", **(labels or {})},
        capacity={"cpu": 64_000, "memory": 512 << 30, "nvidia.com/gpu": gpus},
        allocatable={"cpu": 64_000, "memory": 512 << 30, "nvidia.com/gpu": gpus},
        addresses=(("InternalIP", "10.0.0.1"), ("Hostname", name)),
        conditions=(Condition("Ready", ready, "KubeletReady", "", EPOCH - 600),),
        unschedulable=cordoned,
        created_at=EPOCH - 86_400,
    )


def shared_node(name: str = "share-1", cards: int = 2, units: int = 40) -> Node:
    """A node whose cards have `units` GiB each and are shared by memory."""
    slots = tuple(
        GpuSlot(
            index, f"GPU-{name}-{index}", index, "NVIDIA A100", units * 1024, units, mode="shared"
        )
        for index in range(cards)
    )
    amounts = {
        "cpu": 32_000,
        "memory": 256 << 30,
        "aliyun.com/gpu-mem": cards * units,
        "aliyun.com/gpu-count": cards,
    }
    return Node(
        name,
        uid=f"uid-{name}",
        capacity=amounts,
        allocatable=amounts,
        addresses=(("InternalIP", "10.0.1.1"),),
        conditions=(Condition("Ready", "True"),),
        created_at=EPOCH - 86_400,
        gpus=slots,
    )


def cpu_node(name: str = "cpu-1") -> Node:
    return Node(
        name,
        capacity={"cpu": 8000, "memory": 32 << 30},
        conditions=(Condition("Ready", "True"),),
        created_at=EPOCH - 86_400,
    )


def pod(
    name: str,
    node: str = "",
    limits: Amounts | None = None,
    *,
    namespace: str = "team-a",
    phase: str = "",
    job: Job | None = None,
    role: str = "worker",
    grants: dict[str, tuple[Grant, ...]] | None = None,
    conditions: Sequence[Condition] = (),
    gates: tuple[str, ...] = (),
) -> Pod:
    """A pod: Running if it has a node, otherwise Pending; its limits are also its requests."""
    amounts = limits or {}
    labels = (
        {"training.kubeflow.org/job-name": job.name, "training.kubeflow.org/replica-type": role}
        if job
        else {}
    )
    return Pod(
        namespace,
        name,
        uid=f"uid-{name}",
        labels=labels,
        owners=(Owner(job.kind, job.name, job.uid, True),) if job else (),
        node=node,
        phase=phase or ("Running" if node else "Pending"),
        containers=(Container("main", requests=amounts, limits=amounts),),
        conditions=tuple(conditions),
        created_at=EPOCH - 300,
        started_at=EPOCH - 290 if node else None,
        gates=gates,
        grants=grants or {},
    )


def training_job(
    name: str = "bert",
    workers: int = 2,
    gpus: int = 1,
    *,
    namespace: str = "team-a",
    state: str = "Running",
    finished_at: float | None = None,
    created_at: float = EPOCH - 300,
    suspended: bool = False,
) -> Job:
    return Job(
        "pytorchjob",
        "PyTorchJob",
        "kubeflow.org/v1",
        namespace,
        name,
        uid=f"uid-job-{name}",
        roles=(Role("worker", workers, limits={"nvidia.com/gpu": gpus}),),
        conditions=(
            Condition("Created", "True", at=created_at),
            Condition(state, "True", at=created_at + 10),
        ),
        created_at=created_at,
        started_at=None if state == "Created" else created_at + 10,
        finished_at=finished_at,
        suspended=suspended,
    )


def reading(
    node: str = "gpu-1",
    index: int = 0,
    used_mib: float | None = 1000.0,
    ratio: float | None = 0.5,
    *,
    holder: Pod | None = None,
    idle_since: float | None = None,
    healthy: bool | None = True,
    last_xid: int | None = None,
    uuid: str = "",
    total_mib: float | None = CARD_MIB,
) -> GpuReading:
    return GpuReading(
        node,
        index,
        uuid or f"GPU-{node}-{index}",
        "NVIDIA H200",
        total_mib,
        used_mib,
        ratio,
        60.0,
        400.0,
        healthy,
        last_xid,
        EPOCH - 60 if last_xid else None,
        "570.1",
        idle_since,
        EPOCH,
        (GpuHolder(holder.namespace, holder.name, "main", "exclusive", used_mib, total_mib, ratio),)
        if holder
        else (),
    )


def quota_tree() -> QuotaNode:
    """40 cores: leaf a (min 10) with team-a and team-b, leaf b (min 20) with team-c."""
    return QuotaNode(
        "root",
        "root",
        min={"cpu": 40_000},
        max={"cpu": 40_000},
        children=(
            QuotaNode(
                "a", "root.a", "root", {"cpu": 10_000}, {"cpu": 30_000}, ("team-a", "team-b")
            ),
            QuotaNode("b", "root.b", "root", {"cpu": 20_000}, {}, ("team-c",)),
        ),
    )


def telemetry(state: str = "ok", message: str = "", hint: str = "") -> Source:
    return Source("gpu-telemetry", state, message, hint, EPOCH - 1)


def cluster(
    nodes: Sequence[Node] = (),
    pods: Sequence[Pod] = (),
    jobs: Sequence[Job] = (),
    gpus: Sequence[GpuReading] = (),
    quota: QuotaNode | None = None,
    **more: object,
) -> ClusterSnapshot:
    """A snapshot whose rows are sorted like those of a real reader."""
    return ClusterSnapshot(
        nodes=tuple(sorted(nodes, key=lambda node: node.name)),
        pods=tuple(sorted(pods, key=lambda each: (each.namespace, each.name))),
        jobs=tuple(jobs),
        gpus=tuple(sorted(gpus, key=lambda gpu: (gpu.node, gpu.index))),
        quota=quota,
        taken_at=EPOCH,
        version=7,
        **more,  # type: ignore[arg-type]
    )


MARKUP = "<img src=x onerror=alert(1)>"


def living_cluster() -> ClusterSnapshot:
    """Two kinds of GPU nodes, a running and a failed job, a quota tree, and a label value that
    contains markup.
    """
    job, failed = training_job(), training_job("gpt", state="Failed", finished_at=EPOCH - 100)
    pods = [
        pod(f"bert-worker-{n}", "gpu-1", {"nvidia.com/gpu": 1, "cpu": 4000}, job=job)
        for n in range(2)
    ]
    gpus = [reading(index=n, holder=pods[n] if n < 2 else None) for n in range(4)]
    sources = {
        "nodes": Source("nodes", good_at=EPOCH),
        "tfjobs": Source("tfjobs", "missing", "no `tfjobs` here", "install its CRD"),
    }
    nodes = [gpu_node(labels={"note": MARKUP}), shared_node(), cpu_node()]
    return cluster(nodes, pods, [job, failed], gpus, quota_tree(), sources=sources)


def large_cluster(nodes: int = 5000, jobs: int = 2000, other_pods: int = 30_000) -> ClusterSnapshot:
    """Nodes of eight cards, jobs of ten pods with two GPUs each, and pods without GPUs; every card
    has readings.
    """
    machines = [
        gpu_node(f"gpu-{n:05d}", 8, labels={f"label-{k}": f"value-{n % 7}" for k in range(12)})
        for n in range(nodes)
    ]
    work = [
        training_job(f"job-{n:04d}", 10, 2, namespace=f"team-{n % 40:02d}") for n in range(jobs)
    ]
    members = [
        pod(
            f"{job.name}-worker-{k}",
            f"gpu-{(n * 10 + k) // 4 % nodes:05d}",
            {"nvidia.com/gpu": 2},
            namespace=job.namespace,
            job=job,
        )
        for n, job in enumerate(work)
        for k in range(10)
    ]
    others = [
        pod(f"web-{n:05d}", f"gpu-{n % nodes:05d}", {"cpu": 500}, namespace=f"team-{n % 40:02d}")
        for n in range(other_pods)
    ]
    seats: dict[str, list[Pod]] = {}
    for member in members:
        seats.setdefault(member.node, []).extend([member, member])
    readings = [
        reading(
            node.name,
            n,
            40_000.0 + n,
            (n * 13 % 100) / 100,
            holder=seats[node.name][n] if n < len(seats.get(node.name, ())) else None,
        )
        for node in machines
        for n in range(8)
    ]
    return cluster(machines, [*members, *others], work, readings, quota_tree())
