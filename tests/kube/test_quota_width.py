"""Quota on the real control plane beyond the demo: budgets, Jobs, StatefulSets, priorities, rolling
updates, trees that change or break.

Each test leaves its namespaces empty. A watch of the test's own sees every write, and no instant
may show more than a max allows.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.kube.control_plane import ControlPlane, running_control_plane
from tests.kube.quota_line import (
    TREES,
    QuotaController,
    big_node,
    bounded,
    budget,
    clear,
    deployment,
    enforce,
    install,
    install_crd,
    job,
    running_controller,
    settled,
    stateful_set,
)
from tests.kube.quota_truth import QuotaTruth, quota_condition
from tests.waiting import wait_until

pytestmark = pytest.mark.turns(2, 0)

Object = dict[str, Any]
PLACES = ("lender", "owner", "small")
HOLDS = "test.fairlead.io/holds"
ROOT = bounded(
    "root",
    40,
    40,
    children=[
        bounded("lender", 10, 40, ["lender"]),
        bounded("owner", 20, 40, ["owner"]),
        bounded("small", 10, 10, ["small"]),
    ],
) | {"attributes": {"fairlead.io/surge-wait": "5s"}}


@pytest.fixture(scope="module")
def cluster() -> Iterator[ControlPlane]:
    with running_control_plane() as made:
        install(made)
        made.admin.create([big_node("only", 56)])
        yield made


@pytest.fixture(scope="module")
def controller(cluster: ControlPlane) -> Iterator[QuotaController]:
    with running_controller(cluster, ROOT) as made:
        yield made


@pytest.fixture
def truth(cluster: ControlPlane, controller: QuotaController) -> Iterator[QuotaTruth]:
    made = QuotaTruth(cluster, ROOT)
    try:
        yield made
        assert made.faults == []
        assert controller.component.is_running, controller.component.log_tail()
    finally:
        made.stop()
        clear(cluster, PLACES)


def the(cluster: ControlPlane, resource: str, name: str, place: str) -> Object:
    (found,) = cluster.admin.get(resource, "-n", place, f"--field-selector=metadata.name={name}")
    return found


def scale(cluster: ControlPlane, name: str, place: str, replicas: int) -> None:
    cluster.admin.run("scale", f"deployment/{name}", "-n", place, f"--replicas={replicas}")


# --- disruption budgets ---------------------------------------------------------------------------


def test_a_budget_is_kept_and_named(cluster: ControlPlane, truth: QuotaTruth) -> None:
    cluster.admin.create([budget("web", "lender", "web", 0), deployment("web", "lender", 8, "5")])
    settled(truth, {"lender": 8})
    cluster.admin.create([deployment("back", "owner", 2, "5")])
    wait_until("the owner gets the reason", lambda: truth.reasons("owner") == {"PDBBlocked": 2}, 30)
    sentences = {
        quota_condition(pod)["message"]
        for pod in list(truth.pods.values())
        if pod["metadata"]["namespace"] == "owner"
    }
    assert all("lender/web" in each and "allows 0" in each for each in sentences), sentences
    assert truth.stopped == {}
    cluster.admin.apply([budget("web", "lender", "web", 1)])
    settled(truth, {"lender": 7, "owner": 1})
    assert len(truth.evicted) == 1, (
        "a replacement that waits is not healthy, so the budget lets no other go"
    )
    cluster.admin.run("delete", "pdb", "web", "-n", "lender")
    settled(truth, {"lender": 6, "owner": 2})
    assert truth.stopped == truth.evicted
    assert len(truth.evicted) == 2


def test_a_pod_under_two_budgets_is_never_a_victim(
    cluster: ControlPlane, truth: QuotaTruth
) -> None:
    """The eviction API refuses to evict it, whatever both budgets allow."""
    cluster.admin.create(
        [
            budget("one", "lender", "web", 3),
            budget("two", "lender", "web", 3),
            deployment("web", "lender", 8, "5"),
        ]
    )
    settled(truth, {"lender": 8})
    cluster.admin.create([deployment("back", "owner", 1, "5")])
    wait_until("the owner gets the reason", lambda: truth.reasons("owner") == {"PDBBlocked": 1}, 30)
    cluster.admin.run("delete", "pdb", "two", "-n", "lender")
    settled(truth, {"lender": 7, "owner": 1})
    assert len(truth.evicted) == 1


# --- kinds of owners ------------------------------------------------------------------------------


def test_an_indexed_job_is_suspended_as_a_whole_and_resumed_when_there_is_room(
    cluster: ControlPlane, truth: QuotaTruth
) -> None:
    """All its indices run at once, so it is a gang; of other Jobs only the needed number of pods is
    evicted (test_quota_training).
    """
    cluster.admin.create(
        [
            job("train", "lender", 6, "5", completionMode="Indexed"),
            job("paused", "small", 1, "5", suspend=True),
        ]
    )
    settled(truth, {"lender": 6})
    cluster.admin.create([deployment("back", "owner", 4, "5")])
    settled(truth, {"owner": 4})
    train = the(cluster, "jobs.batch", "train", "lender")
    assert train["spec"]["suspend"] is True
    assert train["spec"]["parallelism"] == 6
    assert train["metadata"]["annotations"]["fairlead.io/suspended-for"].startswith("owner/")
    assert truth.evicted == {}
    assert len(truth.stopped) == 6
    cluster.admin.run("delete", "deployment", "back", "-n", "owner")
    settled(truth, {"lender": 6})
    train = the(cluster, "jobs.batch", "train", "lender")
    assert train["spec"]["suspend"] is False
    assert "fairlead.io/suspended-for" not in train["metadata"].get("annotations", {})
    assert train["status"].get("failed", 0) == 0
    assert the(cluster, "jobs.batch", "paused", "small")["spec"]["suspend"] is True, (
        "its owner suspended it himself"
    )


def test_a_stateful_set_gives_back_pod_by_pod_and_comes_back(
    cluster: ControlPlane, truth: QuotaTruth
) -> None:
    cluster.admin.create([stateful_set("db", "lender", 6, "5")])
    settled(truth, {"lender": 6})
    cluster.admin.create([deployment("back", "owner", 4, "5")])
    settled(truth, {"lender": 4, "owner": 4})
    assert len(truth.evicted) == 2
    assert truth.stopped == truth.evicted
    assert truth.waiting() == {"lender": 2}
    cluster.admin.run("delete", "deployment", "back", "-n", "owner")
    settled(truth, {"lender": 6})
    assert len(truth.evicted) == 2


def test_a_gang_that_lost_a_member_does_not_take_the_room_that_a_claimant_waits_for(
    cluster: ControlPlane, truth: QuotaTruth
) -> None:
    """A finalizer keeps the evicted pod. Meanwhile a member of the gang is deleted, and the
    claimant gets its room.
    """
    together = {
        "pod-group.scheduling.sigs.k8s.io/name": "g",
        "pod-group.scheduling.sigs.k8s.io/min-available": "4",
    }
    loose, gang = (
        deployment("loose", "lender", 2, "5", finalizers=[HOLDS]),
        deployment("gang", "lender", 4, "5", labels=together),
    )
    try:
        cluster.admin.create([gang])
        settled(truth, {"lender": 4})
        cluster.admin.create([loose, deployment("back", "owner", 2, "5")])
        settled(truth, {"lender": 6, "owner": 2})
        scale(cluster, "back", "owner", 3)
        wait_until(
            "one of the single pods is evicted, and stays", lambda: len(truth.evicted) == 1, 30
        )
        member = cluster.admin.get("pods", "-n", "lender", "-l", "app=gang")[0]["metadata"]["name"]
        cluster.admin.run("delete", "pod", member, "-n", "lender", "--wait=false")
        wait_until("the claimant has the room", lambda: truth.running().get("owner") == 3, 30)
        assert len(truth.evicted) == 1
    finally:
        release(cluster, "lender")
    settled(truth, {"lender": 5, "owner": 3})
    running = [
        pod
        for pod in cluster.admin.get("pods", "-n", "lender", "-l", "app=gang")
        if not pod["spec"].get("schedulingGates")
    ]
    assert len(running) == 4, "the gang is whole before a single pod comes back"
    assert len(truth.evicted) == 1
    release(cluster, "lender")


def release(cluster: ControlPlane, place: str) -> None:
    """Remove the finalizer from all pods that have it."""
    for pod in cluster.admin.get("pods", "-n", place):
        if HOLDS in pod["metadata"].get("finalizers", []):
            name = pod["metadata"]["name"]
            cluster.admin.run(
                "patch",
                "pod",
                name,
                "-n",
                place,
                "--type=merge",
                "-p",
                '{"metadata":{"finalizers":null}}',
            )


def test_a_higher_priority_goes_first_inside_a_leaf(
    cluster: ControlPlane, truth: QuotaTruth
) -> None:
    urgent = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "urgent"},
        "value": 100,
    }
    cluster.admin.apply([urgent])
    cluster.admin.create([deployment("low", "small", 2, "5")])
    settled(truth, {"small": 2})
    high = deployment("high", "small", 1, "5")
    high["spec"]["template"]["spec"]["priorityClassName"] = "urgent"
    cluster.admin.create([high])
    wait_until(
        "the urgent one runs",
        lambda: "high" in {name.split("-")[0] for name in admitted(truth, "small")},
        30,
    )
    settled(truth, {"small": 2})
    assert len(truth.evicted) == 1
    assert sorted(name.split("-")[0] for name in admitted(truth, "small")) == ["high", "low"]


@pytest.mark.long
def test_a_rolling_update_in_a_full_leaf_finishes(cluster: ControlPlane, truth: QuotaTruth) -> None:
    """One replica, of which 25 % may not be missing: after five seconds, as the root is configured,
    the new pod takes the old one's place.
    """
    cluster.admin.create([deployment("web", "small", 1, "10")])
    settled(truth, {"small": 1})
    cluster.admin.run("set", "env", "deployment/web", "-n", "small", "RELEASE=2")
    wait_until("the new pod waits", lambda: truth.waiting() == {"small": 1}, 30)
    cluster.admin.run(
        "rollout", "status", "deployment/web", "-n", "small", "--timeout=120s", seconds=130
    )
    settled(truth, {"small": 1})
    assert len(truth.evicted) == 1


def admitted(truth: QuotaTruth, place: str) -> list[str]:
    return [
        pod["metadata"]["name"]
        for pod in list(truth.pods.values())
        if pod["metadata"]["namespace"] == place
        and "schedulingGates" not in pod["spec"]
        and "deletionTimestamp" not in pod["metadata"]
    ]


# --- trees that change ----------------------------------------------------------------------------


def test_a_namespace_that_leaves_the_tree_is_let_go(
    cluster: ControlPlane, truth: QuotaTruth
) -> None:
    cluster.admin.create([deployment("web", "small", 4, "5")])
    settled(truth, {"small": 2})
    without = {**ROOT, "children": [each for each in ROOT["children"] if each["name"] != "small"]}
    truth.above.pop("small")
    enforce(cluster, without)
    wait_until("all run", lambda: len(admitted(truth, "small")) == 4, 30)
    (place,) = (
        each for each in cluster.admin.get("namespaces") if each["metadata"]["name"] == "small"
    )
    assert "fairlead.io/quota" not in place["metadata"]["labels"]
    assert "fairlead.io/leaf" not in place["metadata"].get("annotations", {})
    cluster.admin.run("delete", "deployment", "web", "-n", "small")
    wait_until("none is left", lambda: not admitted(truth, "small"), 30)
    enforce(cluster, ROOT)


def test_while_the_tree_or_its_kind_is_away_no_pod_is_admitted_and_none_evicted(
    cluster: ControlPlane, truth: QuotaTruth
) -> None:
    cluster.admin.create([deployment("web", "lender", 8, "5")])
    settled(truth, {"lender": 8})
    cluster.admin.run("delete", "crd", TREES, "--wait")
    cluster.admin.create([deployment("back", "owner", 2, "5")])
    wait_until(
        "waiting pods get the reason", lambda: truth.reasons("owner") == {"TreeInvalid": 2}, 30
    )
    scale(cluster, "web", "lender", 6)
    settled(truth, {"lender": 6})
    assert truth.evicted == {}
    install_crd(cluster)
    enforce(cluster, ROOT)
    settled(truth, {"lender": 6, "owner": 2})
    assert truth.evicted == {}


def test_a_tree_that_cannot_be_read_admits_no_pod_and_gives_the_reason(
    cluster: ControlPlane, truth: QuotaTruth
) -> None:
    twice = {**ROOT, "children": [*ROOT["children"][:2], {**ROOT["children"][2], "name": "owner"}]}
    patch = json.dumps({"spec": {"root": twice}})
    cluster.admin.run(
        "patch", TREES, "elasticquotatree", "-n", "kube-system", "--type=merge", "-p", patch
    )
    cluster.admin.create([deployment("web", "lender", 1, "5")])
    wait_until("it is reported", lambda: truth.reasons("lender") == {"TreeInvalid": 1}, 30)
    events = ("events", "-n", "kube-system", "--field-selector=reason=QuotaTreeInvalid")
    wait_until("an Event reports it", lambda: bool(cluster.admin.get(*events)), 30)
    enforce(cluster, ROOT)
    settled(truth, {"lender": 1})
