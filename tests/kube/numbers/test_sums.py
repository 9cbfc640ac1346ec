"""Do kubectl, the cluster exporter through a real Prometheus, and the console agree on sums of GPUs
and GPU memory?

Sums of the cluster, of each node, job, namespace and quota leaf, with whole, shared, divided and
time-sliced cards.
"""

from __future__ import annotations

import pytest
from tests.kube.numbers.company_seen import CompanySeen, Differences
from tests.kube.numbers.reported_cards import CARDS, limits_of
from tests.kube.numbers.sums import (
    SUMS,
    Sum,
    apart,
)
from tests.kube.numbers.tied_pods import GATE
from tests.kube.numbers.truth import Numbers, Truth
from tests.kube.objects import GPU


@pytest.mark.parametrize("each", SUMS, ids=lambda each: each.expression[:70])
def test_prometheus_has_what_kubectl_prints(seen: CompanySeen, each: Sum) -> None:
    assert seen.await_none(lambda: apart(seen, [each])) == {}


@pytest.mark.parametrize("by", ["owner", "leaf", "user", "namespace"])
def test_what_holders_have_together_is_what_the_cluster_has_allocated(
    seen: CompanySeen, by: str
) -> None:
    """On cards that pods take in turns, each pod counts all of the memory. On all other cards the
    memory is a sum, too.
    """
    assert seen.await_agreement("groups", "overview", "pools", "nodes") == {}
    console = seen.console
    board = console.api("/overview")
    groups = console.api("/holders/groups", by=by, size="500")["items"]
    nodes, pools = console.api("/nodes", size="500")["items"], board["pools"]
    sums = [
        sum(each[key] for each in rows)
        for rows, key in ((groups, "gpus"), (nodes, "gpusAllocated"), (pools, "gpusAllocated"))
    ]
    assert sums == pytest.approx([board["gpus"]["allocated"]] * 3, abs=0.002)
    twice = (
        sum(node.memory_of(pod) for node in seen.truth.gpu_nodes for pod in node.pods)
        - board["gpuMemory"]["allocatedMiB"]
    )
    assert sum(each["gpuMemoryAllocatedMiB"] for each in groups) - twice == pytest.approx(
        board["gpuMemory"]["allocatedMiB"]
    )
    (sliced,) = [card.total for card in CARDS if card.node == "sliced-1"]
    turns = [pod for pod in seen.truth.by_name["sliced-1"].pods if limits_of(pod)]
    assert twice == sliced * (len(turns) - 1)


def drawn(seen: CompanySeen, name: str, true: Numbers, **filters: str) -> Differences:
    """The newest value of each line of a chart that differs from the truth."""
    found: Numbers = {}
    for line in seen.console.api(f"/charts/{name}", top="50", **filters)["series"]:
        known = [value for _, value in line["points"] if value is not None]
        labels = line["labels"]
        place = f"{labels['node']}/{labels['gpu']}" if "gpu" in labels else labels["job"]
        found[place] = known[-1] if known else None
    return {} if found == pytest.approx(true) else {name: (found, true)}


def charted(truth: Truth, name: str, node: str) -> Numbers:
    """What exporters report of a node's cards."""
    cards = truth.by_name[node].cards
    if name == "gpu-memory-used":
        return {f"{node}/{card.index}": card.used for card in cards}
    return {f"{node}/{card.index}": 100 * card.busy for card in cards if card.busy is not None}


@pytest.mark.parametrize("node", ["a100-1", "a100-2", "share-1"])
@pytest.mark.parametrize("name", ["gpu-duty-cycle", "gpu-memory-used"])
def test_a_chart_of_one_node_has_its_cards_and_no_others(
    seen: CompanySeen, name: str, node: str
) -> None:
    assert (
        seen.await_none(lambda: drawn(seen, name, charted(seen.truth, name, node), gpu_node=node))
        == {}
    )


def test_a_chart_of_one_job_is_of_no_other(seen: CompanySeen) -> None:
    def differ() -> Differences:
        (bert,) = [job for job in seen.truth.trainings if job["metadata"]["name"] == "bert"]
        busy = seen.truth.busy_of(seen.truth.pods_of(bert))
        return drawn(seen, "job-gpu-utilization", {"bert": 100 * (busy or 0)}, job_name="bert")

    assert seen.await_none(differ) == {}


def test_mins_promise_more_than_nodes_have(seen: CompanySeen) -> None:
    """28 GPUs are promised. The two GPUs that are held on the cordoned node count
    (docs/how-to/quota-operations.md): 26 exist, not 24.
    """
    assert seen.look().available(GPU) < 28
    assert seen.truth.min_of(seen.truth.root["children"][1], GPU) < 20


def test_pods_that_wait_for_quota_are_those_with_a_gate(seen: CompanySeen) -> None:
    """A leaf without waiting pods shows 0."""
    gated = [
        pod
        for pod in seen.truth.pods
        if any(gate["name"] == GATE for gate in pod["spec"].get("schedulingGates", ()))
    ]
    listed = seen.console.api("/quota/waiting", size="500")["items"]
    assert (
        sorted(each["name"] for each in listed)
        == sorted(pod["metadata"]["name"] for pod in gated)
        != []
    )
    rows = {
        (row["path"], row["resource"]): row["waitingPods"]
        for row in seen.console.api("/quota/usage", size="500")["items"]
    }
    assert (rows["root.vision", GPU], rows["root.research", GPU], rows["root.spare", "cpu"]) == (
        2,
        0,
        0,
    )
