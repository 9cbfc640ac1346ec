"""The `arena_*` families that the reference suite's four boards read, with exact names.

Specification: docs/spec/telemetry.md#arena-metrics.

The four metrics of a node (and of a job) have identical label values, because the boards' tables
merge equal rows; so they share one `keys` list. For nodes and jobs an unknown value is -1;
elsewhere it has no series.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fairlead.model.metric import NO_LABELS, Family, Key, MetricName
from fairlead.model.occupancy import NodeOccupancy, PodUse, rounded_gpus
from fairlead.model.quota.tree import QuotaNode
from fairlead.model.resources import CPU, Amounts, counted
from fairlead.rules.jobs.status import board_state
from fairlead.rules.nodes.status import arena_mode, node_ip, role_text, status_word
from fairlead.rules.reports.cluster import ClusterSummary, ReportedJob

_MIB: Final = 1 << 20
_UNKNOWN: Final = -1
_N: Final = (
    "node_name",
    "node_ip",
    "node_role",
    "node_status",
    "gpu_mode",
    "total_gpus",
    "total_gpu_mem",
)
_J: Final = ("job_namespace", "job_name", "job_type", "job_status", "request_gpus")
_I: Final = (*_J, "instance_name", "instance_status")
_Q: Final = (
    "path",
    "user_group",
    "namespaces",
    "resource_name",
    "max",
    "min",
    "used",
    "sort_key",
    "user_name",
)


def _gauge(name: str, labels: tuple[str, ...], help: str) -> MetricName:
    return MetricName(f"arena_{name}", "gauge", labels, help)


TOTAL_GPUS: Final = _gauge("total_gpus_of_cluster", (), "GPUs of the cluster")
ALLOCATED_GPUS: Final = _gauge("allocated_gpus_of_cluster", (), "Allocated GPUs of the cluster")
UNHEALTHY_GPUS: Final = _gauge("unhealthy_gpus_of_cluster", (), "Unhealthy GPUs of the cluster")
TOTAL_MEMORY: Final = _gauge(
    "total_gpu_memory_of_cluster", (), "GPU memory of the cluster in bytes"
)
ALLOCATED_MEMORY: Final = _gauge(
    "allocated_gpu_memory_of_cluster", (), "Allocated GPU memory of the cluster in bytes"
)
USED_MEMORY: Final = _gauge(
    "used_gpu_memory_of_cluster", (), "Used GPU memory of the cluster in bytes"
)
NODE_GPUS: Final = _gauge("used_gpus_of_node", _N, "Allocated GPUs of the node")
NODE_UTILIZATION: Final = _gauge(
    "gpu_utilization_of_node", _N, "Mean GPU utilization of the node in percent, -1 when unknown"
)
NODE_ALLOCATED: Final = _gauge(
    "allocated_gpu_memory_of_node",
    _N,
    "Allocated GPU memory of the node in bytes, -1 when unknown",
)
NODE_USED: Final = _gauge(
    "used_gpu_memory_of_node", _N, "Used GPU memory of the node in bytes, -1 when unknown"
)
JOB_DURATION: Final = _gauge(
    "duration_of_training_job", _J, "Duration of the training job in seconds"
)
JOB_USED: Final = _gauge(
    "used_gpu_memory_of_training_job",
    _J,
    "Used GPU memory of the training job in bytes, -1 when unknown",
)
JOB_ALLOCATED: Final = _gauge(
    "allocated_gpu_memory_of_training_job",
    _J,
    "Allocated GPU memory of the training job in bytes, -1 when unknown",
)
JOB_UTILIZATION: Final = _gauge(
    "gpu_utilization_of_training_job",
    _J,
    "Mean GPU utilization of the training job in percent, -1 when unknown",
)
POD_USED: Final = _gauge(
    "used_gpu_memory_of_training_job_instance", _I, "Used GPU memory of the instance in bytes"
)
POD_ALLOCATED: Final = _gauge(
    "allocated_gpu_memory_of_training_job_instance",
    _I,
    "Allocated GPU memory of the instance in bytes",
)
POD_UTILIZATION: Final = _gauge(
    "gpu_utilization_of_training_job_instance",
    _I,
    "Mean GPU utilization of the instance in percent",
)
QUOTA: Final = _gauge(
    "elastic_resource_quota_tree",
    _Q,
    "1; the node of the elastic quota tree, its numbers in labels",
)
NAMES: Final = (
    TOTAL_GPUS,
    ALLOCATED_GPUS,
    UNHEALTHY_GPUS,
    TOTAL_MEMORY,
    ALLOCATED_MEMORY,
    USED_MEMORY,
    NODE_GPUS,
    NODE_UTILIZATION,
    NODE_ALLOCATED,
    NODE_USED,
    JOB_DURATION,
    JOB_USED,
    JOB_ALLOCATED,
    JOB_UTILIZATION,
    POD_USED,
    POD_ALLOCATED,
    POD_UTILIZATION,
    QUOTA,
)


def arena_families(summary: ClusterSummary) -> list[Family]:
    """All `arena_*` families of the cluster."""
    return [
        *_cluster(summary),
        *_nodes(summary),
        *_jobs(summary.jobs),
        *_instances(summary.jobs),
        _quota(summary),
    ]


def _cluster(summary: ClusterSummary) -> list[Family]:
    if not summary.knows_nodes:
        return []
    totals = summary.totals
    families = [
        Family(TOTAL_GPUS, NO_LABELS, [totals.gpus]),
        Family(UNHEALTHY_GPUS, NO_LABELS, [totals.gpus_unhealthy]),
        Family(TOTAL_MEMORY, NO_LABELS, [_bytes(totals.memory_total_mib)]),
        Family(USED_MEMORY, NO_LABELS, [_bytes(totals.memory_used_mib)]),
    ]
    if summary.knows_pods:
        families.append(Family(ALLOCATED_GPUS, NO_LABELS, [rounded_gpus(totals.gpus_allocated)]))
        families.append(Family(ALLOCATED_MEMORY, NO_LABELS, [_bytes(totals.memory_allocated_mib)]))
    return families


def _nodes(summary: ClusterSummary) -> list[Family]:
    nodes, knows = summary.nodes, summary.knows_pods
    keys = [_node_key(each) for each in nodes]
    return [
        Family(
            NODE_GPUS,
            keys,
            [rounded_gpus(each.gpus_allocated) if knows else _UNKNOWN for each in nodes],
        ),
        Family(NODE_UTILIZATION, keys, [_percent(each.utilization_ratio) for each in nodes]),
        Family(
            NODE_ALLOCATED,
            keys,
            [_or_unknown(each.memory_allocated_mib) if knows else _UNKNOWN for each in nodes],
        ),
        Family(NODE_USED, keys, [_or_unknown(each.memory_used_mib) for each in nodes]),
    ]


def _node_key(each: NodeOccupancy) -> Key:
    node, total = each.node, each.memory_total_mib
    return (
        node.name,
        node_ip(node) or "N/A",
        role_text(node),
        status_word(node),
        arena_mode(each.mode),
        str(each.gpus_total),
        str(_UNKNOWN if total is None else int(total) * _MIB),
    )


def _jobs(jobs: Sequence[ReportedJob]) -> list[Family]:
    keys = [_job_key(row) for row in jobs]
    return [
        Family(JOB_DURATION, keys, [row.duration_seconds for row in jobs]),
        Family(JOB_USED, keys, [_held(row.use, row.use.memory_used_mib, _UNKNOWN) for row in jobs]),
        Family(
            JOB_ALLOCATED,
            keys,
            [_held(row.use, row.use.memory_allocated_mib, _UNKNOWN) for row in jobs],
        ),
        Family(JOB_UTILIZATION, keys, [_percent(row.use.utilization_ratio) for row in jobs]),
    ]


def _job_key(row: ReportedJob) -> Key:
    job = row.job
    return (job.namespace, job.name, job.type, board_state(row.status), str(row.gpus_requested))


def _instances(jobs: Sequence[ReportedJob]) -> list[Family]:
    """An unknown value has no series here, and neither has an allocation of 0.

    Boards divide used by allocated; -1 / -1 and 0 / 0 would not be shares.
    """
    keys: list[Key] = []
    uses: list[PodUse] = []
    for row in jobs:
        key = _job_key(row)
        for instance in row.instances:
            keys.append((*key, instance.pod.name, instance.status))
            uses.append(instance.use)
    return [
        Family(POD_USED, keys, [_held(use, use.memory_used_mib, None) for use in uses]),
        Family(
            POD_ALLOCATED,
            keys,
            [_held(use, use.memory_allocated_mib, None) or None for use in uses],
        ),
        Family(
            POD_UTILIZATION,
            keys,
            [
                None if use.utilization_ratio is None else _percent(use.utilization_ratio)
                for use in uses
            ],
        ),
    ]


def _quota(summary: ClusterSummary) -> Family:
    keys: list[Key] = []
    for use in summary.quota:
        node = use.node
        for resource in sorted({*node.min, *node.max, *use.own.used}):
            keys.append(
                (
                    parent_path(node),
                    node.name,
                    ",".join(node.namespaces),
                    resource,
                    _amount(node.max, resource, "N/A"),
                    _amount(node.min, resource, "0"),
                    _amount(use.own.used, resource, "0"),
                    node.path,
                    "",
                )
            )
    return Family(QUOTA, keys, [1] * len(keys))


def parent_path(node: QuotaNode) -> str:
    """The dotted path of the parent, the organization of the boards; the root is its own parent.

    >>> parent_path(QuotaNode("root.a.1", "root.a.1")), parent_path(QuotaNode("root", "root"))
    ('root.a', 'root')
    """
    return node.path.rpartition(".")[0] or node.path


def _amount(amounts: Amounts, resource: str, absent: str) -> str:
    """Base units as text: cores, bytes, counts.

    >>> [_amount({"cpu": milli}, "cpu", "0") for milli in (8000, 1234567, 12345678, 500, 0)]
    ['8', '1234.567', '12345.678', '0.5', '0']
    """
    if resource not in amounts:
        return absent
    amount = counted(amounts, resource)
    if resource == CPU:
        whole, milli = divmod(amount, 1000)
        return f"{whole}.{milli:03}".rstrip("0").removesuffix(".")
    return str(amount)


def _bytes(mib: float | None) -> int | None:
    return None if mib is None else round(mib * _MIB)


def _or_unknown(mib: float | None) -> int:
    return _UNKNOWN if mib is None else round(mib * _MIB)


def _held(use: PodUse, mib: float | None, unknown: int | None) -> int | None:
    """Memory of a pod or job that holds GPUs.

    A launcher, and a job that waits or has ended, holds none: its memory is 0, not unknown.
    """
    if use.gpus == 0:
        return 0
    return unknown if mib is None else round(mib * _MIB)


def _percent(ratio: float | None) -> float:
    return _UNKNOWN if ratio is None else round(100 * ratio, 2)
