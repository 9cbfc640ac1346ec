"""Fairlead's own metrics of the cluster, in base units (docs/spec/telemetry.md#cluster-metrics).

`fairlead_{cluster,node,job,jobs,gpu_pod,quota}_*`. Labels are never `job`, `pod`, `namespace` or
`node`, which Prometheus puts on targets. A value that is not known has no series.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from fairlead.model.devices.gpu import GpuMode
from fairlead.model.metric import NO_LABELS, Family, Key, MetricName
from fairlead.model.occupancy import NodeOccupancy, PodUse
from fairlead.model.pod import Pod
from fairlead.model.quota.plan import Reason
from fairlead.model.quota.use import QuotaUse
from fairlead.model.resources import CPU, Amounts, counted
from fairlead.rules.jobs.status import native_state
from fairlead.rules.nodes.status import gpu_model, is_ready, node_ip, role_text
from fairlead.rules.pods.devices import gpu_kind
from fairlead.rules.pods.owner import named_owner
from fairlead.rules.pods.status import ended_at, node_wait, pod_status
from fairlead.rules.reports.cluster import ClusterSummary, InstanceRow, ReportedJob

_MIB: Final = 1 << 20
JOB_STATES: Final = ("queuing", "pending", "running", "succeeded", "failed", "suspended")
_NODE: Final = ("node_name",)
_JOB: Final = ("job_namespace", "job_name", "job_type")
_INSTANCE: Final = (*_JOB, "instance_name", "node_name")
_POD: Final = ("namespace_name", "pod_name", "node_name")
_QUOTA: Final = ("path", "quota", "parent", "leaf", "resource")
UNKNOWN_USER: Final = "-"
WAIT_REASONS: Final = tuple(reason.value for reason in Reason)
UNJUDGED: Final = "Unjudged"
"""The reason of a waiting pod whose condition gives none yet. Each reason always has a series."""


def _gauge(name: str, labels: tuple[str, ...], help: str) -> MetricName:
    return MetricName(f"fairlead_{name}", "gauge", labels, help)


CLUSTER: Final = (
    _gauge("cluster_gpu_nodes", (), "Nodes with GPUs."),
    _gauge(
        "cluster_gpu_nodes_allocated",
        (),
        "GPU nodes of which some GPU, or part of one, is granted.",
    ),
    _gauge("cluster_gpu_nodes_unhealthy", (), "GPU nodes that are not Ready."),
    _gauge("cluster_gpus", (), "GPUs."),
    _gauge("cluster_gpus_allocated", (), "GPUs granted; shared ones count by the granted part."),
    _gauge("cluster_gpus_unhealthy", (), "GPUs that may not take work."),
    _gauge("cluster_gpu_memory_bytes", (), "GPU memory."),
    _gauge("cluster_gpu_memory_allocated_bytes", (), "GPU memory granted."),
    _gauge("cluster_gpu_memory_used_bytes", (), "GPU memory in use."),
    _gauge("cluster_gpu_utilization_ratio", (), "Mean utilization of the GPUs that report."),
)
NODE_INFO: Final = _gauge(
    "node_info",
    (*_NODE, "node_ip", "node_role", "gpu_mode", "gpu_model"),
    "1; what the GPU node is.",
)
NODE: Final = (
    _gauge("node_ready", _NODE, "1 when the node is Ready."),
    _gauge("node_schedulable", _NODE, "1 when the node takes new pods."),
    _gauge("node_gpus", _NODE, "GPUs of the node."),
    _gauge(
        "node_gpus_allocated",
        _NODE,
        "GPUs of the node that are granted; shared ones count by the granted part.",
    ),
    _gauge("node_gpus_unhealthy", _NODE, "GPUs of the node that may not take work."),
    _gauge("node_gpu_memory_bytes", _NODE, "GPU memory of the node."),
    _gauge("node_gpu_memory_allocated_bytes", _NODE, "GPU memory of the node that is granted."),
    _gauge("node_gpu_memory_used_bytes", _NODE, "GPU memory of the node in use."),
    _gauge("node_gpu_utilization_ratio", _NODE, "Mean utilization of the node's GPUs."),
)
JOBS: Final = _gauge(
    "jobs",
    ("job_namespace", "job_type", "status"),
    "Jobs by status; all six statuses are always there.",
)
JOB_STATUS: Final = _gauge("job_status", (*_JOB, "status"), "1; the job's current status.")
JOB: Final = (
    _gauge("job_duration_seconds", _JOB, "How long the job has run, or ran."),
    _gauge("job_queue_wait_seconds", _JOB, "How long the job waited until it ran, or has waited."),
    _gauge("job_gpus_requested", _JOB, "GPUs the job's spec asks for, over all roles."),
    _gauge(
        "job_gpus_allocated",
        _JOB,
        "GPUs that the job's pods hold; shared ones count by the granted part.",
    ),
    _gauge("job_gpu_memory_allocated_bytes", _JOB, "GPU memory granted to the job's pods."),
    _gauge("job_gpu_memory_used_bytes", _JOB, "GPU memory the job's pods use."),
    _gauge("job_created", _JOB, "When the job was created (epoch seconds)."),
    _gauge("job_status_start_time", _JOB, "When the job started (epoch seconds)."),
    _gauge(
        "job_status_completion_time",
        _JOB,
        "When the job ended, in success or in failure (epoch seconds).",
    ),
    _gauge("job_gpu_utilization_ratio", _JOB, "Mean utilization of the GPUs the job's pods hold."),
)
INSTANCE_INFO: Final = _gauge(
    "job_instance_info",
    (*_INSTANCE, "instance_status", "role"),
    "1; status and role of a job's pod.",
)
INSTANCE: Final = (
    _gauge("job_instance_gpu_memory_allocated_bytes", _INSTANCE, "GPU memory granted to the pod."),
    _gauge("job_instance_gpu_memory_used_bytes", _INSTANCE, "GPU memory the pod uses."),
    _gauge(
        "job_instance_gpu_utilization_ratio",
        _INSTANCE,
        "Mean utilization of the GPUs the pod holds.",
    ),
)
POD_INFO: Final = _gauge(
    "gpu_pod_info",
    (*_POD, "phase", "reason", "owner_kind", "owner_name", "workload_type", "workload", "gpu_mode"),
    "1; a pod that asks for a GPU or part of one. `workload`: the Deployment where a "
    "ReplicaSet owns it, the CronJob where its Job does;"
    " a pod that a person made is its own.",
)
POD_RESTARTS: Final = MetricName(
    "fairlead_gpu_pod_restarts_total",
    "counter",
    _POD,
    "Container restarts of a pod that asks for a GPU.",
)
POD: Final = (
    _gauge("gpu_pod_created", _POD, "When a pod that asks for a GPU was created (epoch seconds)."),
    _gauge(
        "gpu_pod_start_time",
        _POD,
        "When a kubelet took a pod that asks for a GPU (epoch seconds).",
    ),
    _gauge(
        "gpu_pod_completion_time",
        _POD,
        "When the last container of a pod that asked for a GPU ended (epoch seconds).",
    ),
    _gauge(
        "gpu_pod_queue_wait_seconds",
        _POD,
        "How long a pod that asks for a GPU waited for its node, or has waited.",
    ),
)
QUOTA: Final = (
    _gauge(
        "quota_min",
        _QUOTA,
        (
            "Guaranteed amount of the quota node (cores, bytes, counts), as it counts: less than "
            "is written where nodes have less."
        ),
    ),
    _gauge(
        "quota_min_written",
        _QUOTA,
        "Guaranteed amount of the quota node as the quota tree has it.",
    ),
    _gauge("quota_max", _QUOTA, "Largest amount of the quota node; +Inf when unlimited."),
    _gauge(
        "quota_used",
        _QUOTA,
        "Amount that admitted pods of the quota node ask for, until they are gone.",
    ),
    _gauge("quota_pending", _QUOTA, "Amount that waiting pods of the quota node ask for."),
    _gauge("quota_request", _QUOTA, "Used and pending together."),
    _gauge("quota_guaranteed", _QUOTA, "The part of used that is within the node's own min."),
    _gauge("quota_borrowed", _QUOTA, "The part of used above the node's own min."),
    _gauge(
        "quota_claimed", _QUOTA, "Amount promised to waiting pods for which room is being made."
    ),
)
QUOTA_WAITING_FOR: Final = _gauge(
    "quota_waiting_for",
    _QUOTA,
    (
        "Pods, gangs and suspended jobs of a leaf that wait because there is no room for what "
        "they ask of the resource."
    ),
)
QUOTA_SMALLEST: Final = _gauge(
    "quota_pending_smallest",
    _QUOTA,
    "The smallest request for the resource among the pods, gangs and jobs that wait for it.",
)
QUOTA_NAMESPACE: Final = _gauge(
    "quota_namespace_used",
    (*_QUOTA, "namespace_name"),
    "What pods of one namespace of a leaf use of it.",
)
QUOTA_USER: Final = _gauge(
    "quota_user_used",
    (*_QUOTA, "user"),
    "What the pods of one user use of a leaf; user `-`: pods whose user is unknown.",
)
QUOTA_WAITING: Final = _gauge(
    "quota_waiting_pods",
    (*_QUOTA[:-1], "reason"),
    (
        "Pods of a leaf that wait, by the reason that their condition gives; `Unjudged` = it "
        "gives none yet."
    ),
)
NAMES: Final = (
    *CLUSTER,
    NODE_INFO,
    *NODE,
    JOBS,
    JOB_STATUS,
    *JOB,
    INSTANCE_INFO,
    *INSTANCE,
    POD_INFO,
    POD_RESTARTS,
    *POD,
    *QUOTA,
    QUOTA_WAITING_FOR,
    QUOTA_SMALLEST,
    QUOTA_NAMESPACE,
    QUOTA_USER,
    QUOTA_WAITING,
)


def native_families(summary: ClusterSummary) -> list[Family]:
    """All native families of the cluster."""
    return [
        *_cluster(summary),
        *_nodes(summary),
        _jobs_by_status(summary.statuses),
        *_jobs(summary.jobs),
        *_instances(summary.jobs),
        *_gpu_pods(summary.snapshot.pods, summary.now),
        *_quota(summary),
    ]


def _cluster(summary: ClusterSummary) -> list[Family]:
    if not summary.knows_nodes:
        return []
    totals, knows = summary.totals, summary.knows_pods
    values = (
        totals.nodes,
        totals.nodes_allocated if knows else None,
        totals.nodes_unhealthy,
        totals.gpus,
        totals.gpus_allocated if knows else None,
        totals.gpus_unhealthy,
        _bytes(totals.memory_total_mib),
        _bytes(totals.memory_allocated_mib) if knows else None,
        _bytes(totals.memory_used_mib),
        totals.utilization_ratio,
    )
    return [
        Family(metric, NO_LABELS, [value]) for metric, value in zip(CLUSTER, values, strict=True)
    ]


def _nodes(summary: ClusterSummary) -> list[Family]:
    nodes, snapshot, knows = summary.nodes, summary.snapshot, summary.knows_pods
    keys = [(each.node.name,) for each in nodes]
    facts = [
        (
            each.node.name,
            node_ip(each.node),
            role_text(each.node),
            each.mode,
            gpu_model(each.node, snapshot),
        )
        for each in nodes
    ]
    columns: tuple[Callable[[NodeOccupancy], float | int | None], ...] = (
        lambda each: int(is_ready(each.node)),
        lambda each: int(not each.node.unschedulable),
        lambda each: each.gpus_total,
        lambda each: each.gpus_allocated if knows else None,
        lambda each: each.gpus_unhealthy,
        lambda each: _bytes(each.memory_total_mib),
        lambda each: _bytes(each.memory_allocated_mib) if knows else None,
        lambda each: _bytes(each.memory_used_mib),
        lambda each: each.utilization_ratio,
    )
    families = [
        Family(metric, keys, [value(each) for each in nodes])
        for metric, value in zip(NODE, columns, strict=True)
    ]
    return [Family(NODE_INFO, facts, [1] * len(facts)), *families]


def _jobs_by_status(statuses: Mapping[tuple[str, str], list[str]]) -> Family:
    keys: list[Key] = []
    counts: list[int] = []
    for group in sorted(statuses):
        states = [native_state(status) for status in statuses[group]]
        keys += [(*group, state) for state in JOB_STATES]
        counts += [states.count(state) for state in JOB_STATES]
    return Family(JOBS, keys, counts)


def _jobs(jobs: Sequence[ReportedJob]) -> list[Family]:
    keys = [_job_key(row) for row in jobs]
    statuses = [(*key, native_state(row.status)) for key, row in zip(keys, jobs, strict=True)]
    columns: tuple[Callable[[ReportedJob], float | int | None], ...] = (
        lambda row: row.duration_seconds,
        lambda row: row.wait_seconds,
        lambda row: row.gpus_requested,
        lambda row: row.use.gpus,
        lambda row: _held(row.use, row.use.memory_allocated_mib),
        lambda row: _held(row.use, row.use.memory_used_mib),
        lambda row: row.job.created_at,
        lambda row: row.job.started_at,
        lambda row: row.job.finished_at,
        lambda row: row.use.utilization_ratio,
    )
    families = [
        Family(metric, keys, [value(row) for row in jobs])
        for metric, value in zip(JOB, columns, strict=True)
    ]
    return [Family(JOB_STATUS, statuses, [1] * len(statuses)), *families]


def _job_key(row: ReportedJob) -> Key:
    return (row.job.namespace, row.job.name, row.job.type)


def _instances(jobs: Sequence[ReportedJob]) -> list[Family]:
    rows = [(row, instance) for row in jobs for instance in row.instances]
    keys = [(*_job_key(row), instance.pod.name, instance.pod.node) for row, instance in rows]
    facts = [
        (*key, instance.status, instance.role)
        for key, (_, instance) in zip(keys, rows, strict=True)
    ]
    columns: tuple[Callable[[InstanceRow], float | int | None], ...] = (
        lambda instance: _held(instance.use, instance.use.memory_allocated_mib),
        lambda instance: _held(instance.use, instance.use.memory_used_mib),
        lambda instance: instance.use.utilization_ratio,
    )
    families = [
        Family(metric, keys, [value(each) for _, each in rows])
        for metric, value in zip(INSTANCE, columns, strict=True)
    ]
    return [Family(INSTANCE_INFO, facts, [1] * len(facts)), *families]


def _gpu_pods(pods: Iterable[Pod], now: float) -> list[Family]:
    found = [(pod, kind) for pod in pods if (kind := gpu_kind(pod.limits)) != GpuMode.NONE]
    keys = [(pod.namespace, pod.name, pod.node) for pod, _ in found]
    facts = [(*key, *_pod_facts(pod, kind)) for key, (pod, kind) in zip(keys, found, strict=True)]
    restarts = [
        sum(status.restarts for status in (*pod.statuses, *pod.init_statuses)) for pod, _ in found
    ]
    columns: tuple[Callable[[Pod], float | None], ...] = (
        lambda pod: pod.created_at,
        lambda pod: pod.started_at,
        ended_at,
        lambda pod: node_wait(pod, now),
    )
    families = [
        Family(metric, keys, [value(pod) for pod, _ in found])
        for metric, value in zip(POD, columns, strict=True)
    ]
    return [
        Family(POD_INFO, facts, [1] * len(facts)),
        Family(POD_RESTARTS, keys, restarts),
        *families,
    ]


def _pod_facts(pod: Pod, kind: str) -> Key:
    owner, word, made_by = pod.controller, pod_status(pod), named_owner(pod)
    workload = (made_by.kind.lower(), made_by.name) if made_by else ("pod", pod.name)
    return (
        pod.phase,
        "" if word == pod.phase else word,
        owner.kind if owner else "",
        owner.name if owner else "",
        *workload,
        kind,
    )


def _quota(summary: ClusterSummary) -> list[Family]:
    """Rows by (quota node, resource): each resource that the node names or its pods request."""
    rows = [
        (use, resource)
        for use in summary.quota
        for resource in sorted({*use.node.min, *use.node.max, *use.own.request})
    ]
    keys = [_quota_key(use, resource) for use, resource in rows]
    spaces = [
        (*key, name)
        for key, (use, _) in zip(keys, rows, strict=True)
        for name in use.own.used_by_namespace
    ]
    users = [
        (*key, name or UNKNOWN_USER)
        for key, (use, _) in zip(keys, rows, strict=True)
        for name in use.own.used_by_user
    ]
    columns: tuple[Callable[[QuotaUse, str], float | int], ...] = (
        lambda use, resource: _base({resource: use.min_of(resource)}, resource),
        lambda use, resource: _base(use.node.min, resource),
        lambda use, resource: (
            _base(use.node.max, resource) if resource in use.node.max else math.inf
        ),
        lambda use, resource: _base(use.own.used, resource),
        lambda use, resource: _base({resource: use.waits(resource)}, resource),
        lambda use, resource: _base(use.own.request, resource),
        lambda use, resource: _base(use.own.guaranteed, resource),
        lambda use, resource: _base(use.own.borrowed, resource),
        lambda use, resource: _base(use.own.claimed, resource),
    )
    leaves = [use for use in summary.quota if use.node.is_leaf]
    of_leaves = [
        (use, resource, summary.quota_lacks.get(use.node.name, {}).get(resource))
        for use, resource in rows
        if use.node.is_leaf
    ]
    lacking = [(use, resource, lack) for use, resource, lack in of_leaves if lack]
    waiting = [
        (_quota_key(use, reason), count) for use in leaves for reason, count in _waiting(use)
    ]
    return [
        *(
            Family(metric, keys, [value(*row) for row in rows])
            for metric, value in zip(QUOTA, columns, strict=True)
        ),
        Family(
            QUOTA_WAITING_FOR,
            [_quota_key(use, each) for use, each, _ in of_leaves],
            [lack.units if lack else 0 for *_, lack in of_leaves],
        ),
        Family(
            QUOTA_SMALLEST,
            [_quota_key(use, each) for use, each, _ in lacking],
            [_base({each: lack.smallest}, each) for _, each, lack in lacking],
        ),
        Family(
            QUOTA_NAMESPACE,
            spaces,
            [
                _base(part, resource)
                for use, resource in rows
                for part in use.own.used_by_namespace.values()
            ],
        ),
        Family(
            QUOTA_USER,
            users,
            [
                _base(part, resource)
                for use, resource in rows
                for part in use.own.used_by_user.values()
            ],
        ),
        Family(QUOTA_WAITING, [key for key, _ in waiting], [count for _, count in waiting]),
    ]


def _waiting(use: QuotaUse) -> list[tuple[str, int]]:
    """Waiting pods by reason; last those whose condition gives none."""
    counts = [(reason, use.own.waiting_by_reason.get(reason, 0)) for reason in WAIT_REASONS]
    return [*counts, (UNJUDGED, use.own.waiting_pods - sum(count for _, count in counts))]


def _quota_key(use: QuotaUse, last: str) -> Key:
    return (
        use.node.path,
        use.node.name,
        use.node.parent,
        "true" if use.node.is_leaf else "false",
        last,
    )


def _base(amounts: Amounts, resource: str) -> float | int:
    """Base units: cores, bytes, counts."""
    amount = counted(amounts, resource)
    return amount / 1000 if resource == CPU else amount


def _held(use: PodUse, mib: float | None) -> int | None:
    """Memory of a pod that holds GPUs. A pod without GPUs uses 0, which is not unknown."""
    return 0 if use.gpus == 0 else _bytes(mib)


def _bytes(mib: float | None) -> int | None:
    return None if mib is None else round(mib * _MIB)
