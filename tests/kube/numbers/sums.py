"""Sums on which all pages must agree."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml
from tests.kube.numbers.company_seen import CompanySeen, Differences
from tests.kube.numbers.node_truth import NodeTruth, mean, seconds, total
from tests.kube.numbers.reported_cards import CARDS
from tests.kube.numbers.truth import Numbers, Truth
from tests.kube.objects import GPU, GPU_MEMORY, Object

RULES = Path(__file__).resolve().parents[3] / "deploy" / "prometheus" / "fairlead.rules.yaml"
MIB = 1 << 20
NODE, JOB = ("node_name",), ("job_name",)


class Sum(NamedTuple):
    """An expression whose series have the labels `labels`, times `scale`, and the true value by
    those labels.
    """

    expression: str
    labels: tuple[str, ...]
    true: Callable[[Truth], Numbers]
    scale: float = 1.0
    slack: float = 0.001


def recorded(name: str) -> str:
    """The expression of a recording rule, as it is shipped."""
    groups = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    (found,) = [
        rule["expr"] for group in groups for rule in group["rules"] if rule.get("record") == name
    ]
    return str(found)


def of_cluster(value: Callable[[Iterable[NodeTruth]], float | None]) -> Callable[[Truth], Numbers]:
    return lambda truth: {"": value(truth.gpu_nodes)}


def of_nodes(value: Callable[[NodeTruth], float | None]) -> Callable[[Truth], Numbers]:
    """True values by node; a node with an unknown value has no series."""
    return lambda truth: {
        node.name: value(node) for node in truth.gpu_nodes if value(node) is not None
    }


def of_jobs(
    value: Callable[[Truth, list[Object]], float | None], *, nothing: float | None = 0
) -> Callable[[Truth], Numbers]:
    """A job that holds no GPU uses none, and its utilization is unknown."""

    def found(truth: Truth) -> Numbers:
        reported = {job["metadata"]["name"]: (truth.pods_of(job), truth) for job in truth.trainings}
        values = {
            name: value(truth, pods) if truth.gpus_of(pods) else nothing
            for name, (pods, _) in reported.items()
        }
        return {name: each for name, each in values.items() if each is not None}

    return found


def of_leaves(resource: str) -> Callable[[Truth], Numbers]:
    def used(truth: Truth) -> Numbers:
        leaves = [leaf["name"] for leaf in truth.root["children"]]
        return {
            leaf: sum(truth.asked_of(pod, resource) for pod in truth.of_leaf(leaf, waiting=False))
            for leaf in leaves
        }

    return used


def of_mins(least: Callable[[Truth, Object, str], float]) -> Callable[[Truth], Numbers]:
    return lambda truth: {leaf["name"]: least(truth, leaf, GPU) for leaf in truth.root["children"]}


def written(truth: Truth, leaf: Object, resource: str) -> float:
    del truth
    return float(leaf["min"][resource])


def of_namespaces(truth: Truth) -> Numbers:
    """What Fairlead's GPU exporter reports: whole and shared cards of its nodes."""
    own = {card.node for card in CARDS if card.family == "own" and not card.instances} - {
        "sliced-1"
    }
    found: dict[str, float] = {}
    for pod in truth.holding:
        node = truth.node_of(pod)
        if node.name in own:
            space = pod["metadata"]["namespace"]
            found[space] = found.get(space, 0) + node.worth(pod)
    return dict(found)


def waited(truth: Truth) -> Numbers:
    """Seconds from the pod's creation until it ran, from its condition. A pod that still waits
    counts until now, and is not compared here.
    """
    found: Numbers = {}
    for job in truth.trainings:
        ran = [
            seconds(each["lastTransitionTime"])
            for each in job["status"]["conditions"]
            if each["type"] == "Running"
        ]
        if ran:
            found[job["metadata"]["name"]] = max(
                0.0, ran[0] - seconds(job["metadata"]["creationTimestamp"])
            )
    return found


SUMS = (
    Sum("fairlead_cluster_gpus", (), of_cluster(lambda nodes: sum(node.gpus for node in nodes))),
    Sum(
        "fairlead_cluster_gpus_allocated",
        (),
        of_cluster(lambda nodes: sum(node.allocated for node in nodes)),
    ),
    Sum(
        "sum(fairlead_node_gpus_allocated)",
        (),
        of_cluster(lambda nodes: sum(node.allocated for node in nodes)),
    ),
    Sum(
        "max(arena_total_gpus_of_cluster)",
        (),
        of_cluster(lambda nodes: sum(node.gpus for node in nodes)),
    ),
    Sum(
        "max(arena_allocated_gpus_of_cluster)",
        (),
        of_cluster(lambda nodes: sum(node.allocated for node in nodes)),
        slack=0.051,
    ),
    Sum(
        "max(arena_unhealthy_gpus_of_cluster)",
        (),
        of_cluster(lambda nodes: sum(node.broken for node in nodes)),
    ),
    Sum(
        "count(max_over_time(arena_used_gpus_of_node[30s]))",
        (),
        of_cluster(lambda nodes: len(list(nodes))),
    ),
    Sum(
        'count(arena_used_gpus_of_node{node_status!="Ready"})',
        (),
        of_cluster(lambda nodes: sum(node.ready != "True" for node in nodes)),
    ),
    Sum(
        "fairlead_cluster_gpu_memory_bytes",
        (),
        of_cluster(lambda nodes: total(node.memory for node in nodes)),
        MIB,
    ),
    Sum(
        "fairlead_cluster_gpu_memory_allocated_bytes",
        (),
        of_cluster(lambda nodes: total(node.memory_allocated for node in nodes)),
        MIB,
    ),
    Sum(
        "max(arena_allocated_gpu_memory_of_cluster)",
        (),
        of_cluster(lambda nodes: total(node.memory_allocated for node in nodes)),
        MIB,
    ),
    Sum(
        "fairlead_cluster_gpu_memory_used_bytes",
        (),
        of_cluster(lambda nodes: total(node.memory_used for node in nodes)),
        MIB,
    ),
    Sum(
        "max(arena_used_gpu_memory_of_cluster)",
        (),
        of_cluster(lambda nodes: total(node.memory_used for node in nodes)),
        MIB,
    ),
    Sum(
        "fairlead_cluster_gpu_utilization_ratio",
        (),
        of_cluster(lambda nodes: mean(busy for node in nodes for busy in node.busy)),
    ),
    Sum("fairlead_node_gpus", NODE, of_nodes(lambda node: node.gpus)),
    Sum("fairlead_node_gpus_allocated", NODE, of_nodes(lambda node: node.allocated)),
    Sum(
        "sum(arena_used_gpus_of_node) by (node_name)",
        NODE,
        of_nodes(lambda node: node.allocated),
        slack=0.051,
    ),
    Sum("fairlead_node_gpus_unhealthy", NODE, of_nodes(lambda node: node.broken)),
    Sum("fairlead_node_gpu_memory_bytes", NODE, of_nodes(lambda node: node.memory), MIB),
    Sum(
        "fairlead_node_gpu_memory_allocated_bytes",
        NODE,
        of_nodes(lambda node: node.memory_allocated),
        MIB,
    ),
    Sum("fairlead_node_gpu_memory_used_bytes", NODE, of_nodes(lambda node: node.memory_used), MIB),
    Sum("arena_used_gpu_memory_of_node >= 0", NODE, of_nodes(lambda node: node.memory_used), MIB),
    Sum("fairlead_node_gpu_utilization_ratio", NODE, of_nodes(lambda node: mean(node.busy))),
    Sum("fairlead_node_ready", NODE, of_nodes(lambda node: int(node.ready == "True"))),
    Sum("fairlead_node_schedulable", NODE, of_nodes(lambda node: int(not node.is_cordoned))),
    Sum("fairlead_job_gpus_allocated", JOB, of_jobs(lambda truth, pods: truth.gpus_of(pods))),
    Sum(
        "fairlead_job_gpu_memory_allocated_bytes",
        JOB,
        of_jobs(lambda truth, pods: truth.memory_of(pods)),
        MIB,
    ),
    Sum(
        "sum by (job_name) (fairlead_job_instance_gpu_memory_allocated_bytes) > 0",
        JOB,
        of_jobs(Truth.memory_of, nothing=None),
        MIB,
    ),
    Sum("fairlead_job_gpu_memory_used_bytes", JOB, of_jobs(Truth.used_by), MIB),
    Sum("fairlead_job_gpu_utilization_ratio", JOB, of_jobs(Truth.busy_of, nothing=None)),
    Sum(
        "sum(arena_gpu_utilization_of_training_job >= 0) by (job_name)",
        JOB,
        of_jobs(Truth.busy_of, nothing=None),
        100,
        0.01,
    ),
    Sum(
        ('fairlead_job_queue_wait_seconds and on (job_name) fairlead_job_status{status="running"}'),
        JOB,
        waited,
    ),
    Sum('fairlead_quota_used{leaf="true", resource="nvidia.com/gpu"}', ("path",), of_leaves(GPU)),
    Sum(
        ('fairlead_quota_used{leaf="true", resource="aliyun.com/gpu-mem"}'),
        ("path",),
        of_leaves(GPU_MEMORY),
    ),
    Sum(
        ('fairlead_quota_min{leaf="true", resource="nvidia.com/gpu"}'),
        ("path",),
        of_mins(Truth.min_of),
    ),
    Sum(
        ('fairlead_quota_min_written{leaf="true", resource="nvidia.com/gpu"}'),
        ("path",),
        of_mins(written),
    ),
    Sum(recorded("fairlead:namespace_gpus_allocated:sum"), ("namespace_name",), of_namespaces),
)


def apart(seen: CompanySeen, sums: Iterable[Sum]) -> Differences:
    """Expressions whose values differ from the truth, with both."""
    found: Differences = {}
    for each in sums:
        reported: Numbers = {
            " ".join(s.labels[name] for name in each.labels): s.value / each.scale
            for s in seen.prometheus.query(each.expression)
        }
        true = each.true(seen.truth)
        if reported != pytest.approx(true, abs=each.slack):
            found[each.expression] = (reported, true)
    return found
