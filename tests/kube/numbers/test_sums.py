"""Are GPUs and GPU memory one number, whoever sums them: kubectl, the cluster exporter through a real Prometheus, the console?

Of the cluster, of each node, job, namespace and quota leaf; whole, shared, divided and sliced cards among them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml
from tests.kube.numbers.company_seen import CompanySeen, Differences
from tests.kube.numbers.node_truth import NodeTruth, mean, seconds, total
from tests.kube.numbers.tied_pods import GATE
from tests.kube.numbers.told_cards import CARDS, limits_of
from tests.kube.numbers.truth import Numbers, Truth
from tests.kube.objects import GPU, GPU_MEMORY, Object

RULES = Path(__file__).resolve().parents[3] / "deploy" / "prometheus" / "fairlead.rules.yaml"
MIB = 1 << 20
NODE, JOB = ("node_name",), ("job_name",)


class Sum(NamedTuple):
    """An expression whose series bear `labels`, times `scale`, and what it is by those labels."""

    expression: str
    labels: tuple[str, ...]
    true: Callable[[Truth], Numbers]
    scale: float = 1.0
    slack: float = 0.001


def recorded(name: str) -> str:
    """The expression of a recording rule, as it is shipped."""
    groups = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    (found,) = [rule["expr"] for group in groups for rule in group["rules"] if rule.get("record") == name]
    return str(found)


def of_cluster(value: Callable[[Iterable[NodeTruth]], float | None]) -> Callable[[Truth], Numbers]:
    return lambda truth: {"": value(truth.gpu_nodes)}


def of_nodes(value: Callable[[NodeTruth], float | None]) -> Callable[[Truth], Numbers]:
    """Who is not known has no series."""
    return lambda truth: {node.name: value(node) for node in truth.gpu_nodes if value(node) is not None}


def of_jobs(value: Callable[[Truth, list[Object]], float | None], *, nothing: float | None = 0) -> Callable[[Truth], Numbers]:
    """A job that holds nothing uses nothing, and nobody can say how busy it is."""

    def found(truth: Truth) -> Numbers:
        told = {job["metadata"]["name"]: (truth.pods_of(job), truth) for job in truth.trainings}
        values = {name: value(truth, pods) if truth.gpus_of(pods) else nothing for name, (pods, _) in told.items()}
        return {name: each for name, each in values.items() if each is not None}

    return found


def of_leaves(resource: str) -> Callable[[Truth], Numbers]:
    def used(truth: Truth) -> Numbers:
        leaves = [leaf["name"] for leaf in truth.root["children"]]
        return {leaf: sum(truth.asked_of(pod, resource) for pod in truth.of_leaf(leaf, waiting=False)) for leaf in leaves}

    return used


def of_mins(least: Callable[[Truth, Object, str], float]) -> Callable[[Truth], Numbers]:
    return lambda truth: {leaf["name"]: least(truth, leaf, GPU) for leaf in truth.root["children"]}


def written(truth: Truth, leaf: Object, resource: str) -> float:
    del truth
    return float(leaf["min"][resource])


def of_namespaces(truth: Truth) -> Numbers:
    """What our own GPU exporter tells of: whole and shared cards of its nodes."""
    ours = {card.node for card in CARDS if card.family == "own" and not card.instances} - {"sliced-1"}
    found: dict[str, float] = {}
    for pod in truth.holding:
        node = truth.node_of(pod)
        if node.name in ours:
            space = pod["metadata"]["namespace"]
            found[space] = found.get(space, 0) + node.worth(pod)
    return dict(found)


def waited(truth: Truth) -> Numbers:
    """From its creation until it ran, by its condition; what waits, until now, and is not compared here."""
    found: Numbers = {}
    for job in truth.trainings:
        ran = [seconds(each["lastTransitionTime"]) for each in job["status"]["conditions"] if each["type"] == "Running"]
        if ran:
            found[job["metadata"]["name"]] = max(0.0, ran[0] - seconds(job["metadata"]["creationTimestamp"]))
    return found


SUMS = (
    Sum("fairlead_cluster_gpus", (), of_cluster(lambda nodes: sum(node.gpus for node in nodes))),
    Sum("fairlead_cluster_gpus_allocated", (), of_cluster(lambda nodes: sum(node.allocated for node in nodes))),
    Sum("sum(fairlead_node_gpus_allocated)", (), of_cluster(lambda nodes: sum(node.allocated for node in nodes))),
    Sum("max(arena_total_gpus_of_cluster)", (), of_cluster(lambda nodes: sum(node.gpus for node in nodes))),
    Sum("max(arena_allocated_gpus_of_cluster)", (), of_cluster(lambda nodes: sum(node.allocated for node in nodes)), slack=0.051),
    Sum("max(arena_unhealthy_gpus_of_cluster)", (), of_cluster(lambda nodes: sum(node.broken for node in nodes))),
    Sum("count(max_over_time(arena_used_gpus_of_node[30s]))", (), of_cluster(lambda nodes: len(list(nodes)))),
    Sum('count(arena_used_gpus_of_node{node_status!="Ready"})', (), of_cluster(lambda nodes: sum(node.ready != "True" for node in nodes))),
    Sum("fairlead_cluster_gpu_memory_bytes", (), of_cluster(lambda nodes: total(node.memory for node in nodes)), MIB),
    Sum("fairlead_cluster_gpu_memory_allocated_bytes", (), of_cluster(lambda nodes: total(node.memory_allocated for node in nodes)), MIB),
    Sum("max(arena_allocated_gpu_memory_of_cluster)", (), of_cluster(lambda nodes: total(node.memory_allocated for node in nodes)), MIB),
    Sum("fairlead_cluster_gpu_memory_used_bytes", (), of_cluster(lambda nodes: total(node.memory_used for node in nodes)), MIB),
    Sum("max(arena_used_gpu_memory_of_cluster)", (), of_cluster(lambda nodes: total(node.memory_used for node in nodes)), MIB),
    Sum("fairlead_cluster_gpu_utilization_ratio", (), of_cluster(lambda nodes: mean(busy for node in nodes for busy in node.busy))),
    Sum("fairlead_node_gpus", NODE, of_nodes(lambda node: node.gpus)),
    Sum("fairlead_node_gpus_allocated", NODE, of_nodes(lambda node: node.allocated)),
    Sum("sum(arena_used_gpus_of_node) by (node_name)", NODE, of_nodes(lambda node: node.allocated), slack=0.051),
    Sum("fairlead_node_gpus_unhealthy", NODE, of_nodes(lambda node: node.broken)),
    Sum("fairlead_node_gpu_memory_bytes", NODE, of_nodes(lambda node: node.memory), MIB),
    Sum("fairlead_node_gpu_memory_allocated_bytes", NODE, of_nodes(lambda node: node.memory_allocated), MIB),
    Sum("fairlead_node_gpu_memory_used_bytes", NODE, of_nodes(lambda node: node.memory_used), MIB),
    Sum("arena_used_gpu_memory_of_node >= 0", NODE, of_nodes(lambda node: node.memory_used), MIB),
    Sum("fairlead_node_gpu_utilization_ratio", NODE, of_nodes(lambda node: mean(node.busy))),
    Sum("fairlead_node_ready", NODE, of_nodes(lambda node: int(node.ready == "True"))),
    Sum("fairlead_node_schedulable", NODE, of_nodes(lambda node: int(not node.is_cordoned))),
    Sum("fairlead_job_gpus_allocated", JOB, of_jobs(lambda truth, pods: truth.gpus_of(pods))),
    Sum("fairlead_job_gpu_memory_allocated_bytes", JOB, of_jobs(lambda truth, pods: truth.memory_of(pods)), MIB),
    Sum("sum by (job_name) (fairlead_job_instance_gpu_memory_allocated_bytes) > 0", JOB, of_jobs(Truth.memory_of, nothing=None), MIB),
    Sum("fairlead_job_gpu_memory_used_bytes", JOB, of_jobs(Truth.used_by), MIB),
    Sum("fairlead_job_gpu_utilization_ratio", JOB, of_jobs(Truth.busy_of, nothing=None)),
    Sum("sum(arena_gpu_utilization_of_training_job >= 0) by (job_name)", JOB, of_jobs(Truth.busy_of, nothing=None), 100, 0.01),
    Sum('fairlead_job_queue_wait_seconds and on (job_name) fairlead_job_status{status="running"}', JOB, waited),
    Sum('fairlead_quota_used{leaf="true", resource="nvidia.com/gpu"}', ("path",), of_leaves(GPU)),
    Sum('fairlead_quota_used{leaf="true", resource="aliyun.com/gpu-mem"}', ("path",), of_leaves(GPU_MEMORY)),
    Sum('fairlead_quota_min{leaf="true", resource="nvidia.com/gpu"}', ("path",), of_mins(Truth.min_of)),
    Sum('fairlead_quota_min_written{leaf="true", resource="nvidia.com/gpu"}', ("path",), of_mins(written)),
    Sum(recorded("fairlead:namespace_gpus_allocated:sum"), ("namespace_name",), of_namespaces),
)


@pytest.mark.parametrize("each", SUMS, ids=lambda each: each.expression[:70])
def test_prometheus_has_what_kubectl_says(seen: CompanySeen, each: Sum) -> None:
    assert seen.await_none(lambda: apart(seen, [each])) == {}


def apart(seen: CompanySeen, sums: Iterable[Sum]) -> Differences:
    """Expressions whose values are not what is so, with both."""
    found: Differences = {}
    for each in sums:
        told: Numbers = {
            " ".join(s.labels[name] for name in each.labels): s.value / each.scale for s in seen.prometheus.query(each.expression)
        }
        true = each.true(seen.truth)
        if told != pytest.approx(true, abs=each.slack):
            found[each.expression] = (told, true)
    return found


@pytest.mark.parametrize("by", ["owner", "leaf", "user", "namespace"])
def test_what_holders_have_together_is_what_the_cluster_has_allocated(seen: CompanySeen, by: str) -> None:
    """Memory of cards that several take in turns is each one's; of all others it is a sum, too."""
    assert seen.await_agreement("groups", "overview", "pools", "nodes") == {}
    console = seen.console
    board = console.api("/overview")
    groups = console.api("/holders/groups", by=by, size="500")["items"]
    nodes, pools = console.api("/nodes", size="500")["items"], board["pools"]
    sums = [sum(each[key] for each in rows) for rows, key in ((groups, "gpus"), (nodes, "gpusAllocated"), (pools, "gpusAllocated"))]
    assert sums == pytest.approx([board["gpus"]["allocated"]] * 3, abs=0.002)
    twice = sum(node.memory_of(pod) for node in seen.truth.gpu_nodes for pod in node.pods) - board["gpuMemory"]["allocatedMiB"]
    assert sum(each["gpuMemoryAllocatedMiB"] for each in groups) - twice == pytest.approx(board["gpuMemory"]["allocatedMiB"])
    (sliced,) = [card.total for card in CARDS if card.node == "sliced-1"]
    turns = [pod for pod in seen.truth.by_name["sliced-1"].pods if limits_of(pod)]
    assert twice == sliced * (len(turns) - 1)


def drawn(seen: CompanySeen, name: str, true: Numbers, **filters: str) -> Differences:
    """The newest value of each line of a chart, if it is not what is so."""
    found: Numbers = {}
    for line in seen.console.api(f"/charts/{name}", top="50", **filters)["series"]:
        known = [value for _, value in line["points"] if value is not None]
        labels = line["labels"]
        place = f"{labels['node']}/{labels['gpu']}" if "gpu" in labels else labels["job"]
        found[place] = known[-1] if known else None
    return {} if found == pytest.approx(true) else {name: (found, true)}


def charted(truth: Truth, name: str, node: str) -> Numbers:
    """What exporters tell of a node's cards."""
    cards = truth.by_name[node].cards
    if name == "gpu-memory-used":
        return {f"{node}/{card.index}": card.used for card in cards}
    return {f"{node}/{card.index}": 100 * card.busy for card in cards if card.busy is not None}


@pytest.mark.parametrize("node", ["a100-1", "a100-2", "share-1"])
@pytest.mark.parametrize("name", ["gpu-duty-cycle", "gpu-memory-used"])
def test_a_chart_of_one_node_has_its_cards_and_no_others(seen: CompanySeen, name: str, node: str) -> None:
    assert seen.await_none(lambda: drawn(seen, name, charted(seen.truth, name, node), gpu_node=node)) == {}


def test_a_chart_of_one_job_is_of_no_other(seen: CompanySeen) -> None:
    def differ() -> Differences:
        (bert,) = [job for job in seen.truth.trainings if job["metadata"]["name"] == "bert"]
        busy = seen.truth.busy_of(seen.truth.pods_of(bert))
        return drawn(seen, "job-gpu-utilization", {"bert": 100 * (busy or 0)}, job_name="bert")

    assert seen.await_none(differ) == {}


def test_mins_promise_more_than_nodes_have(seen: CompanySeen) -> None:
    """28 are promised. On the cordoned node two GPUs are held, and count (docs/how-to/quota-operations.md): 26 are there, not 24."""
    assert seen.look().available(GPU) < 28
    assert seen.truth.min_of(seen.truth.root["children"][1], GPU) < 20


def test_pods_that_wait_for_quota_are_those_with_a_gate(seen: CompanySeen) -> None:
    """And nothing stands where nobody waits."""
    gated = [pod for pod in seen.truth.pods if any(gate["name"] == GATE for gate in pod["spec"].get("schedulingGates", ()))]
    listed = seen.console.api("/quota/waiting", size="500")["items"]
    assert sorted(each["name"] for each in listed) == sorted(pod["metadata"]["name"] for pod in gated) != []
    rows = {(row["path"], row["resource"]): row["waitingPods"] for row in seen.console.api("/quota/usage", size="500")["items"]}
    assert (rows["root.vision", GPU], rows["root.research", GPU], rows["root.spare", "cpu"]) == (2, 0, 0)
