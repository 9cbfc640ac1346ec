"""Every expression that the reference's four Grafana boards send to Prometheus:
docs/spec/telemetry.md#arena-metrics, last table.

And the expressions of the public board 12239, made for dcgm-exporter
(docs/spec/telemetry.md#grafana-boards).

Variables are filled in as Grafana does for "All": the existing values, joined as one regular
expression.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

VARIABLES = {
    "gpu_node": ("arena_used_gpus_of_node", "node_name"),
    "GPU": ('nvidia_gpu_memory_used_bytes{node_name=~"$gpu_node"}', "uuid"),
    "job_namespace": ("arena_duration_of_training_job", "job_namespace"),
    "job_type": ("arena_duration_of_training_job", "job_type"),
    "job_name": ("arena_duration_of_training_job", "job_name"),
    "job_status": ("arena_duration_of_training_job", "job_status"),
    "Organization": ("arena_elastic_resource_quota_tree", "path"),
    "QuotaName": ("arena_elastic_resource_quota_tree", "user_group"),
    "ResourceName": ("arena_elastic_resource_quota_tree", "resource_name"),
}
"""Variable: metric and label of its `label_values`."""

_NODE_METRICS = ("used_gpus", "gpu_utilization", "allocated_gpu_memory", "used_gpu_memory")
_JOB_METRICS = ("duration", "used_gpu_memory", "allocated_gpu_memory", "gpu_utilization")
_DEVICE = 'node_name=~"$gpu_node", uuid=~"$GPU", allocate_mode!="share"'
_JOB = (
    'job_namespace=~"$job_namespace", job_type=~"$job_type", job_name=~"$job_name", '
    'job_status=~"$job_status"'
)
_INSTANCE = (
    'job_type=~"$job_type", job_name=~"$job_name", job_status=~"$job_status", '
    'instance_status="Running"'
)
_QUOTA = 'path=~"$Organization", user_group=~"$QuotaName", resource_name=~"$ResourceName"'
_INSTANCE_USED, _INSTANCE_ALLOCATED = (
    f"arena_{what}_gpu_memory_of_training_job_instance{{{_INSTANCE}}}"
    for what in ("used", "allocated")
)

UNHEALTHY_NODES = 'count(max_over_time(arena_used_gpus_of_node{node_status!="Ready"}[30s]))'
"""Has data only where a node is not Ready: otherwise there is nothing to count."""

CLUSTER_BOARD = (
    "max(arena_total_gpus_of_cluster)",
    "max(arena_allocated_gpus_of_cluster)",
    "max(arena_unhealthy_gpus_of_cluster)",
    "count(max_over_time(arena_used_gpus_of_node[30s]))",
    "max(arena_used_gpu_memory_of_cluster / arena_total_gpu_memory_of_cluster * 100)",
    "max(arena_allocated_gpu_memory_of_cluster / arena_total_gpu_memory_of_cluster * 100)",
    "abs(avg(arena_gpu_utilization_of_node))",
    "max(arena_allocated_gpus_of_cluster / arena_total_gpus_of_cluster * 100)",
    *(
        (
            f'count(max_over_time(arena_duration_of_training_job{{job_status="{status}"}}[30s])) '
            "or vector(0)"
        )
        for status in ("PENDING", "RUNNING", "SUCCEEDED", "FAILED")
    ),
)
NODE_BOARD = (
    *(
        f'max_over_time(arena_{metric}_of_node{{node_name=~"$gpu_node"}}[25s])'
        for metric in _NODE_METRICS
    ),
    f"avg(nvidia_gpu_duty_cycle{{{_DEVICE}}}) by (uuid, node_name)",
    f"nvidia_gpu_memory_used_bytes{{{_DEVICE}}}",
    (
        f"avg(nvidia_gpu_memory_used_bytes{{{_DEVICE}}} / "
        f"nvidia_gpu_memory_total_bytes{{{_DEVICE}}} * 100) by (node_name,uuid)"
    ),
    'sum(arena_used_gpus_of_node{node_name=~"$gpu_node",node_status="Ready"}) by (node_name)',
    'nvidia_gpu_num_devices{node_name=~"$gpu_node"}',
    (
        'floor(nvidia_gpu_memory_total_bytes{node_name=~"$gpu_node",allocate_mode!="share"} / '
        "1024 / 1024 / 1024)"
    ),
)
JOB_BOARD = (
    *(f"max_over_time(arena_{metric}_of_training_job{{{_JOB}}}[30s])" for metric in _JOB_METRICS),
    f"max_over_time({_INSTANCE_USED}[10s])",
    f"avg({_INSTANCE_USED} / {_INSTANCE_ALLOCATED} * 100) by (job_name,instance_name)",
    f"arena_gpu_utilization_of_training_job_instance{{{_INSTANCE}}}",
)
QUOTA_BOARD = (f"max_over_time(arena_elastic_resource_quota_tree{{{_QUOTA}}}[20s])",)
_FIELD = '{instance=~"$instance", gpu=~"$gpu"}'
TENSOR_OF_12239 = f"DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{_FIELD}"
"""Empty for GPUs older than Hopper."""
BOARD_12239 = (
    f"DCGM_FI_DEV_GPU_TEMP{_FIELD}",
    f"avg(DCGM_FI_DEV_GPU_TEMP{_FIELD})",
    f"DCGM_FI_DEV_POWER_USAGE{_FIELD}",
    f"sum(DCGM_FI_DEV_POWER_USAGE{_FIELD})",
    f"DCGM_FI_DEV_SM_CLOCK{_FIELD} * 1000000",
    f"DCGM_FI_DEV_GPU_UTIL{_FIELD}",
    f"DCGM_FI_DEV_FB_USED{_FIELD}",
    TENSOR_OF_12239,
)
VARIABLES_OF_12239 = {
    "instance": ("DCGM_FI_DEV_GPU_TEMP", "instance"),
    "gpu": ("DCGM_FI_DEV_GPU_TEMP", "gpu"),
}
BOARDS = (*CLUSTER_BOARD, *NODE_BOARD, *JOB_BOARD, *QUOTA_BOARD)


def fill_in(expression: str, values: Mapping[str, list[str]]) -> str:
    """The expression with each `$variable` as the regular expression of its values."""

    def pattern(found: re.Match[str]) -> str:
        return "|".join(re.escape(value).replace("\\", "\\\\") for value in values[found.group(1)])

    return re.sub(r"\$(\w+)", pattern, expression)


def variables() -> Iterator[tuple[str, str, str]]:
    """Name, metric and label of each variable. A variable comes after those that it builds on."""
    for name, (metric, label) in VARIABLES.items():
        yield name, metric, label
