"""A cluster snapshot becomes the state for a plan, independent of the order of rows."""

from __future__ import annotations

import random
from typing import Any

import pytest
from msgspec.structs import replace
from tests.rules.quota.sights import (
    gated,
    pod,
    read_budget,
    read_namespace,
    read_pod,
    read_workload,
    template,
    workload,
)

from fairlead.model.node import Condition, Node
from fairlead.model.quota.rows import Namespace
from fairlead.model.quota.state import QuotaState
from fairlead.model.quota.tree import QuotaNode, QuotaTree, Violation
from fairlead.model.snapshot import ClusterSnapshot, build_snapshot
from fairlead.model.source import Source
from fairlead.rules.quota.plan import plan_quota
from fairlead.rules.quota.sight import quota_state

NOW = 1767610000.0
LEAVES = (
    QuotaNode("a", "root.a", "root", {"cpu": 4000}, {}, ("team",), user_cap={"cpu": 2000}),
    QuotaNode("b", "root.b", "root", {"cpu": 4000}, {}, ("other", "empty")),
)
ROOT = QuotaNode("root", "root", "", {"cpu": 8000}, {"cpu": 8000}, children=LEAVES)
TREE = QuotaTree("elasticquotatree", "kube-system", ROOT)
READY = (Condition("Ready", "True"),)
DEPLOYMENT = workload(
    "apps/v1", "Deployment", "web", labels={"arena.kubeflow.org/console-user": "bob"}
)
REPLICAS = workload("apps/v1", "ReplicaSet", "web-1", owner=DEPLOYMENT)


def objects() -> dict[str, list[Any]]:
    pods = [pod(f"p{i}", owner=REPLICAS, labels={"app": "web"}) for i in range(4)]
    pods += [gated(f"w{i}", owner=REPLICAS) for i in range(3)]
    pods += [
        pod("o", namespace="other"),
        pod("stranger", namespace="elsewhere", cpu="2"),
        pod("done", status={"phase": "Succeeded"}),
    ]
    pods += [
        pod(
            "system",
            owner={
                "apiVersion": "apps/v1",
                "kind": "DaemonSet",
                "metadata": {"name": "d", "uid": "ud"},
            },
        )
    ]
    return {
        "nodes": [
            Node(f"n{i}", allocatable={"cpu": 16000, "pods": 110}, conditions=READY) for i in (1, 2)
        ],
        "pods": [read_pod(each) for each in pods],
        "workloads": [read_workload(each) for each in (DEPLOYMENT, REPLICAS)],
        "budgets": [
            read_budget(
                f"b{i}",
                {"selector": {"matchLabels": {"app": "web"}}},
                {"disruptionsAllowed": i, "observedGeneration": 1},
            )
            for i in (1, 2)
        ],
    }


def snapshot(**rows: Any) -> ClusterSnapshot:
    return build_snapshot(
        taken_at=NOW, quota_tree=TREE, sources=[Source("nodes"), Source("pods")], **rows
    )


def test_the_state_has_the_pods_of_leaves_their_owners_budgets_caps_and_the_room_of_nodes() -> None:
    state = quota_state(snapshot(**objects()), NOW)
    assert [each.name for each in state.pods] == ["p0", "p1", "p2", "p3", "w0", "w1", "w2", "o"]
    assert {each.user for each in state.pods if each.namespace == "team"} == {"bob"}
    assert state.user_caps == {("a", "bob"): {"cpu": 2000}}
    assert state.budgets == {"team/b1": 1, "team/b2": 2}
    assert state.pods[0].budgets == ("team/b1", "team/b2")
    assert state.workloads.keys() == {"uid-web", "uid-web-1"}
    assert state.nodes is not None
    assert [room.taken for room in state.nodes] == [{"cpu": 3000, "pods": 2}, {}], (
        "the stranger's and the DaemonSet's"
    )
    assert (state.now, state.tree) == (NOW, TREE.root)


@pytest.mark.parametrize("seed", range(20))
def test_the_order_of_rows_does_not_matter(seed: int) -> None:
    chance, rows = random.Random(seed), objects()
    wanted = quota_state(snapshot(**objects()), NOW)
    for each in rows.values():
        chance.shuffle(each)
    found = quota_state(snapshot(**rows), NOW)
    assert sorted(found.pods, key=lambda each: each.key) == sorted(
        wanted.pods, key=lambda each: each.key
    )
    assert (found.nodes, found.budgets, found.workloads, found.user_caps) == (
        wanted.nodes,
        wanted.budgets,
        wanted.workloads,
        wanted.user_caps,
    )
    assert plan_quota(found) == plan_quota(wanted)


def test_nodes_that_could_not_be_read_are_unknown_not_absent() -> None:
    unread = replace(snapshot(**{**objects(), "nodes": []}), sources={})
    assert quota_state(unread, NOW).nodes is None


def test_without_a_tree_no_pod_is_counted() -> None:
    state = quota_state(build_snapshot(taken_at=NOW, pods=objects()["pods"]), NOW)
    assert (state.pods, plan_quota(state).admit) == ((), ())


def test_faults_of_the_tree_go_with_the_state() -> None:
    fault = Violation("root.a", "BadShape", "root.a: max of `cpu` is `x`", stops=True)
    state = quota_state(
        replace(snapshot(**objects()), quota_tree=replace(TREE, faults=(fault,))), NOW
    )
    assert fault in state.violations


def test_what_is_wrong_with_a_tree_that_could_be_read_goes_with_the_state_too() -> None:
    twice = replace(ROOT, children=(LEAVES[0], replace(LEAVES[1], namespaces=("team",))))
    state = quota_state(
        replace(snapshot(**objects()), quota_tree=replace(TREE, root=twice), quota=twice), NOW
    )
    assert [each.code for each in state.violations if each.stops] == ["NamespaceInTwoLeaves"]
    assert plan_quota(state).admit == ()


def test_a_jobs_templates_speak_for_it_while_it_is_suspended() -> None:
    job = workload(
        "batch/v1", "Job", "j", {"parallelism": 2, "suspend": True, "template": template("3")}
    )
    state: QuotaState = quota_state(snapshot(workloads=[read_workload(job)]), NOW)
    assert state.workloads["uid-j"].request == {"cpu": 6000}


def test_a_pod_that_does_not_want_to_swap_with_its_predecessor_is_reported() -> None:
    found = quota_state(
        snapshot(pods=[read_pod(gated(annotations={"fairlead.io/surge": "wait"}))]), NOW
    )
    assert found.pods[0].waits_for_surge


LABELLED = read_namespace("gpus", labels={"fairlead.io/installation": "system"})
BY_HELM = read_namespace(
    "gpu-nodes",
    labels={"fairlead.io/installation": "nodes"},
    annotations={"meta.helm.sh/release-namespace": "gpus"},
)
"""Helm labels no namespace that it makes; the chart makes only that of the nodes."""


@pytest.mark.parametrize("spaces", [(LABELLED,), (BY_HELM,)], ids=["labelled", "by Helm"])
def test_pods_of_an_installation_in_other_namespaces_are_not_charged(
    spaces: tuple[Namespace, ...],
) -> None:
    leaf = QuotaNode("a", "root.a", "root", {"cpu": 8000}, {}, ("gpus", "team"))
    root = QuotaNode("root", "root", "", {"cpu": 8000}, {"cpu": 8000}, children=(leaf,))
    snapshot = build_snapshot(
        taken_at=NOW,
        quota_tree=QuotaTree("elasticquotatree", "kube-system", root),
        pods=[read_pod(pod("console", namespace="gpus")), read_pod(pod("user", namespace="team"))],
        namespaces=[*spaces, Namespace("team")],
        sources=[Source("namespaces")],
    )
    state = quota_state(snapshot, NOW)
    assert [each.name for each in state.pods] == ["user"]
    assert [each.message for each in state.violations if each.is_error] == [
        "a: namespace gpus is one of Fairlead's own and takes no quota"
    ]
