"""Cluster: how many GPUs exist, are at work or unhealthy, and which are held without being used."""

from __future__ import annotations

from boards.shape import (
    ANY_IS_BAD,
    CARD_KEY,
    FULL,
    INSTANCE_KEY,
    NO_GPU_EXPORTER,
    YELLOW,
    Board,
    Kind,
    Link,
    Panel,
    Query,
    Row,
    Threshold,
    once,
)

_MEAN = once("avg_over_time(fairlead_gpu_utilization_ratio[30m])", f"{INSTANCE_KEY}, model")
_IDLE = f"{_MEAN} < 0.01 and on (node_name, uuid, mig_gi_id) fairlead_gpu_allocated_ratio >= 0.99"
"""Held whole, and not at work in half an hour."""
_BY_MODEL = (
    "sum by (gpu_model) (max by (node_name) (fairlead_node_gpus) "
    "* on (node_name) group_left (gpu_model) max by (node_name, gpu_model) (fairlead_node_info))"
)
_STATES = ("running", "pending", "queuing", "suspended", "succeeded", "failed")
_NO_JOBS = "0 * max(fairlead_cluster_gpu_nodes)"
"""Zero where the cluster is known: without any job there is no series of one."""


def _jobs(status: str = "") -> str:
    return once(
        f'fairlead_jobs{{status="{status}"}}' if status else "fairlead_jobs",
        "job_namespace, job_type, status",
    )


def _share(title: str, part: str) -> Panel:
    expression = (
        f"max(fairlead_cluster_{part} / "
        f"(fairlead_cluster_{'gpus' if part.startswith('gpus') else 'gpu_memory_bytes'} > 0))"
    )
    return Panel(
        title,
        (Query(expression),),
        Kind.GAUGE,
        "percentunit",
        width=6,
        height=6,
        least=0,
        most=1,
        thresholds=FULL,
    )


BOARD = Board(
    uid="fairlead-cluster",
    title="Cluster",
    description=(
        "GPUs of the cluster: how many exist, are granted, are at work, are unhealthy; jobs by "
        "status; GPUs held idle."
    ),
    rows=(
        Row(
            "Now",
            (
                Panel(
                    "GPU Summary Of Cluster",
                    (
                        Query("max(fairlead_cluster_gpu_nodes)", "GPU nodes"),
                        Query("max(fairlead_cluster_gpu_nodes_allocated)", "allocated nodes"),
                        Query("max(fairlead_cluster_gpu_nodes_unhealthy)", "unhealthy nodes"),
                        Query("max(fairlead_cluster_gpus)", "GPUs"),
                        Query("max(fairlead_cluster_gpus_allocated)", "allocated GPUs"),
                        Query("max(fairlead_cluster_gpus_unhealthy)", "unhealthy GPUs"),
                    ),
                    Kind.NUMBER,
                    description="Shared GPUs count as allocated by the granted part.",
                    width=16,
                    height=6,
                ),
                Panel(
                    "Total GPU Nodes",
                    (Query("max(fairlead_cluster_gpu_nodes)"),),
                    Kind.NUMBER,
                    width=4,
                    height=6,
                ),
                Panel(
                    "Unhealthy GPU Nodes",
                    (Query("max(fairlead_cluster_gpu_nodes_unhealthy)"),),
                    Kind.NUMBER,
                    description="GPU nodes that are not Ready.",
                    width=4,
                    height=6,
                    thresholds=ANY_IS_BAD,
                ),
                _share("GPU Memory(Used/Total)", "gpu_memory_used_bytes"),
                _share("GPU Memory(Allocated/Total)", "gpu_memory_allocated_bytes"),
                Panel(
                    "GPU Utilization",
                    (Query("max(fairlead_cluster_gpu_utilization_ratio)"),),
                    Kind.GAUGE,
                    "percentunit",
                    NO_GPU_EXPORTER,
                    "Mean of all GPUs that report.",
                    width=6,
                    height=6,
                    least=0,
                    most=1,
                ),
                _share("GPUs(Allocated/Total)", "gpus_allocated"),
                Panel(
                    "Training Job Summary Of Cluster",
                    tuple(Query(f"sum({_jobs(state)}) or {_NO_JOBS}", state) for state in _STATES),
                    Kind.NUMBER,
                    width=24,
                    height=5,
                ),
            ),
        ),
        Row(
            "Over time",
            (
                Panel(
                    "GPUs",
                    (
                        Query("max(fairlead_cluster_gpus)", "total"),
                        Query("max(fairlead_cluster_gpus_allocated)", "allocated"),
                        Query("max(fairlead_cluster_gpus_unhealthy)", "unhealthy"),
                    ),
                    least=0,
                ),
                Panel(
                    "GPU memory",
                    (
                        Query("max(fairlead_cluster_gpu_memory_bytes)", "total"),
                        Query("max(fairlead_cluster_gpu_memory_allocated_bytes)", "allocated"),
                        Query("max(fairlead_cluster_gpu_memory_used_bytes)", "used"),
                    ),
                    unit="bytes",
                    least=0,
                ),
                Panel(
                    "Jobs by status",
                    (Query(f"sum by (status) ({_jobs()})", "{{status}}"),),
                    empty="No job yet: `arena submit` makes one.",
                    least=0,
                ),
                Panel(
                    "GPU utilization",
                    (
                        Query("max(fairlead_cluster_gpu_utilization_ratio)", "cluster"),
                        Query(
                            "max by (node_name) (fairlead_node_gpu_utilization_ratio)",
                            "{{node_name}}",
                        ),
                    ),
                    unit="percentunit",
                    empty=NO_GPU_EXPORTER,
                    width=12,
                    least=0,
                    most=1,
                ),
                Panel(
                    "Power of all GPUs",
                    (Query(f"sum({once('fairlead_gpu_power_watts', CARD_KEY)})", "power"),),
                    unit="watt",
                    empty=NO_GPU_EXPORTER,
                    description="Each board once, divided ones too.",
                    width=12,
                    least=0,
                ),
            ),
        ),
        Row(
            "What needs attention",
            (
                Panel(
                    "GPUs by model",
                    (Query(_BY_MODEL, "{{gpu_model}}"),),
                    Kind.BARS,
                    width=6,
                ),
                Panel(
                    "GPUs idle but allocated",
                    (Query(f"count({_IDLE}) or 0 * max(fairlead_gpu_up)"),),
                    Kind.NUMBER,
                    empty=NO_GPU_EXPORTER,
                    description="Held whole, and below 1 % over the last half hour.",
                    width=4,
                    thresholds=(Threshold(1, YELLOW),),
                ),
                Panel(
                    "Which GPUs are idle but allocated",
                    (
                        Query(
                            (
                                "max by (node_name, gpu, uuid, model, mig_profile, mig_gi_id) "
                                f"({_IDLE})"
                            ),
                            "Utilization in 30 min",
                            "percentunit",
                        ),
                    ),
                    Kind.TABLE,
                    empty="No GPU is held for nothing.",
                    width=14,
                    labels=(
                        ("node_name", "Name"),
                        ("gpu", "GPU"),
                        ("mig_profile", "MIG"),
                        ("mig_gi_id", "Instance"),
                        ("model", "Model"),
                        ("uuid", "UUID"),
                    ),
                    links=(("Name", Link("fairlead-gpu-node", "node_name")),),
                ),
                Panel(
                    "Firing alerts",
                    (Query('ALERTS{alertname=~"Fairlead.*", alertstate="firing"}', "Firing"),),
                    Kind.TABLE,
                    empty="No alert of Fairlead fires. Are its rules loaded? docs/how-to/boards.md",
                    width=24,
                    labels=(
                        ("alertname", "Alert"),
                        ("severity", "Severity"),
                        ("node_name", "Node"),
                        ("gpu", "GPU"),
                        ("namespace_name", "Namespace"),
                        ("pod_name", "Pod"),
                        ("path", "Quota"),
                    ),
                ),
            ),
        ),
    ),
)
