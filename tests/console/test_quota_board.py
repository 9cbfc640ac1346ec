"""The Quota board: one row per node and resource, what is borrowed, lent and waited for."""

from __future__ import annotations

import pytest
from msgspec import structs
from msgspec.structs import replace
from tests.console.clusters import EPOCH, GATED, cluster, gpu_node, pod, quota_tree, training_job
from tests.console.quota_demo import full

from fairlead.console.boards.board_state import BoardState
from fairlead.console.boards.rows import matching
from fairlead.console.pages.list_query import ListQuery
from fairlead.console.pages.quota import QuotaRow
from fairlead.model.keys import QUOTA_CONDITION
from fairlead.model.node import Condition
from fairlead.model.quota.tree import QuotaNode
from fairlead.rules.jobs.waiting import why_pod_waits


def board_state(*args: object, **more: object) -> BoardState:
    return BoardState(cluster(*args, **more), EPOCH)  # type: ignore[arg-type]


def cores(namespace: str, name: str, amount: int, node: str = "gpu-1"):  # type: ignore[no-untyped-def]
    return pod(name, node, {"cpu": amount * 1000}, namespace=namespace)


def rows(seen: BoardState, resource: str = "cpu") -> dict[str, QuotaRow]:
    return {row.path: row for row in seen.quota_list if row.resource == resource}


def test_used_and_borrowed_come_from_the_pods_of_the_leafs_namespaces() -> None:
    seen = board_state(
        [gpu_node()],
        [cores("team-a", "x", 8), cores("team-b", "y", 4), cores("team-z", "z", 30)],
        quota=quota_tree(),
    )
    leaf = rows(seen)["root.a"]
    assert (leaf.unit, leaf.min, leaf.max, leaf.used, leaf.borrowed) == ("cores", 10, 30, 12, 2)
    assert [(each.namespace, each.used) for each in leaf.by_namespace] == [
        ("team-a", 8),
        ("team-b", 4),
    ]


def test_what_pods_hold_that_should_be_gone_long_ago_is_shown_beside_what_is_used() -> None:
    """docs/spec/quota.md#timers: five minutes after its deletion a pod is no longer charged,
    although its node still holds the resources.
    """
    stuck = [
        structs.replace(cores("team-a", name, 8), deleted_at=EPOCH - ago)
        for name, ago in (("gone", 301), ("going", 299))
    ]
    seen = rows(board_state([gpu_node()], [*stuck, cores("team-b", "y", 4)], quota=quota_tree()))
    for path in ("root.a", "root"):
        assert (seen[path].used, seen[path].lost, seen[path].requested) == (12, 8, 12)
    assert seen["root.b"].lost == 0


def test_an_unlimited_maximum_is_null() -> None:
    assert rows(board_state(quota=quota_tree()))["root.b"].max is None


def test_inner_nodes_are_totals_and_know_their_place() -> None:
    seen = rows(
        board_state(
            [gpu_node()], [cores("team-a", "x", 8), cores("team-c", "y", 5)], quota=quota_tree()
        )
    )
    assert (seen["root"].used, seen["root"].is_leaf, seen["root"].depth) == (13, False, 0)
    assert (seen["root.a"].parent, seen["root.a"].depth) == ("root", 1)


@pytest.mark.parametrize(
    ("a_uses", "lent"),
    [(10, 0), (20, 0), (25, 5), (30, 10)],
    ids=[
        "no leaf borrows",
        "the unallocated 10 is first come",
        "5 more come out of b's guarantee",
        "10 more",
    ],
)
def test_lent_is_what_others_take_of_the_guarantee_beyond_the_unallocated(
    a_uses: int, lent: int
) -> None:
    seen = rows(board_state([gpu_node()], [cores("team-a", "x", a_uses)], quota=quota_tree()))
    assert (seen["root.b"].lent, seen["root.a"].lent) == (lent, 0)


def test_waiting_pods_and_jobs_are_counted_up_the_tree() -> None:
    job = training_job(namespace="team-c", state="Created")
    waiting = pod("bert-worker-0", "", {"cpu": 4000}, namespace="team-c", job=job, gates=GATED)
    seen = rows(board_state(pods=[waiting], jobs=[job], quota=quota_tree()))
    for path in ("root.b", "root"):
        assert (
            seen[path].waiting_pods,
            seen[path].waiting_jobs,
            seen[path].requested,
            seen[path].used,
        ) == (1, 1, 4, 0)


def test_a_waiting_pod_is_counted_for_what_it_requests_and_nothing_else() -> None:
    """A job runs, and one more of its workers waits for quota: no GPU is waited for, but the job
    counts as waiting.
    """
    job = training_job(namespace="team-c", gpus=0)
    runs = pod("bert-worker-0", "gpu-1", {"cpu": 4000}, namespace="team-c", job=job)
    waits = pod("bert-worker-1", "", {"cpu": 4000}, namespace="team-c", job=job, gates=GATED)
    seen = board_state([gpu_node()], [runs, waits], [job], quota=quota_tree())
    leaf = [entry.row for entry in seen.quota.entries if entry.row.path == "root.b"]
    found = {row.resource: (row.waiting_pods, row.waiting_jobs) for row in leaf}
    assert found["cpu"] == (1, 1)
    assert set(found.values()) == {(1, 1), (0, 0)}


def test_a_job_that_its_owner_suspended_does_not_wait() -> None:
    job = training_job(namespace="team-c", state="Suspended", suspended=True)
    assert rows(board_state(jobs=[job], quota=quota_tree()))["root.b"].waiting_jobs == 0


def test_the_five_tables_are_always_there_and_others_follow() -> None:
    root = QuotaNode(
        "root", "root", min={"rdma/hca": 4}, max={"rdma/hca": 4}, namespaces=("team-a",)
    )
    assert board_state(quota=root).quota_resources == (
        "cpu",
        "memory",
        "nvidia.com/gpu",
        "aliyun.com/gpu-mem",
        "aliyun.com/gpu",
        "rdma/hca",
    )


def test_a_path_filter_takes_what_is_below() -> None:
    seen = board_state(quota=quota_tree())
    asked = ListQuery(filters={"path": frozenset({"root"}), "resource": frozenset({"cpu"})})
    assert [row.path for row in matching(seen.quota, asked)] == ["root", "root.a", "root.b"]


def test_the_sentence_names_leaves_that_wait_below_their_minimum() -> None:
    hungry = pod("x", "", {"cpu": 4000}, namespace="team-c", gates=GATED)
    seen = board_state([gpu_node()], [hungry, cores("team-a", "y", 12)], quota=quota_tree())
    assert seen.quota_sentence.code == "quota-starved"
    assert seen.quota_sentence.text == (
        "1 of 2 leaves borrows; 1 is below the guaranteed minimum while pods wait."
    )
    assert [
        (leaf.path, leaf.resource, leaf.min, leaf.used) for leaf in seen.overview.starved_leaves
    ] == [("root.b", "cpu", 20, 0)]


def test_a_leaf_that_has_its_minimum_of_what_its_pods_wait_for_is_not_starved() -> None:
    root = QuotaNode(
        "root", "root", namespaces=("team-a",), min={"cpu": 10_000, "nvidia.com/gpu": 1}, max={}
    )
    ask = {"cpu": 1000, "nvidia.com/gpu": 1}
    seen = board_state(
        [gpu_node()], [pod("x", "gpu-1", ask), pod("y", "", ask, gates=GATED)], quota=root
    )
    assert (seen.quota_sentence.code, seen.overview.starved_leaves) == ("quota", [])
    seen = board_state([gpu_node()], [pod("y", "", ask, gates=GATED)], quota=root)
    assert [(leaf.path, leaf.resource) for leaf in seen.overview.starved_leaves] == [
        ("root", "nvidia.com/gpu")
    ]


def test_without_a_tree_there_are_no_rows_and_a_sentence() -> None:
    seen = board_state()
    assert (seen.quota_list, seen.quota_resources, seen.quota_sentence.code) == (
        [],
        (),
        "quota-none",
    )


@pytest.mark.parametrize(
    "reason_is_the_plans", [True, False], ids=["the plan's reason", "another reason"]
)
def test_pages_translate_a_pods_reason_by_the_plans_clauses(reason_is_the_plans: bool) -> None:
    """No page reads the sentence of the condition: a condition with other words has the plan's
    clauses, too. A condition with a reason that the plan does not give is shown without changes.
    """
    before = full()
    row = next(row for row in before.waiting.entries if row.row.namespace == "ns1").row
    assert row.reason is not None
    reason = row.reason if reason_is_the_plans else "GatedByOthers"
    condition = Condition(QUOTA_CONDITION, "False", reason, "words of an older version", EPOCH)
    pods = [
        replace(each, conditions=(condition,)) if each.namespace == "ns1" and each.gates else each
        for each in before.snapshot.pods
    ]
    seen = BoardState(replace(before.snapshot, pods=tuple(pods)), EPOCH)
    pod = next(each for each in seen.snapshot.pods if each.conditions == (condition,))
    wait = why_pod_waits(pod)
    assert wait is not None and wait.message == "words of an older version"
    reported = seen.explainer.explain(wait, [pod]).clauses
    assert [(each.code, each.values) for each in reported] == (
        [(each.code, each.values) for each in row.clauses] if reason_is_the_plans else []
    )
    assert row.clauses[0].code == "clause-asks" and row.clauses[0].values == {
        "resource": "cpu",
        "asks": "5",
    }
