"""Every pod that holds a GPU is a row, whatever created it, and the groups of rows add up to the
cluster's allocated GPUs.
"""

from __future__ import annotations

import pytest
from msgspec import structs
from tests.console.clusters import (
    EPOCH,
    cluster,
    gpu_node,
    living_cluster,
    pod,
    quota_tree,
    reading,
    training_job,
)
from tests.console.some_cluster import some_cluster

from fairlead.console.boards.board_state import BoardState
from fairlead.console.boards.holders import GROUPINGS, holder_groups
from fairlead.console.boards.rows import matching
from fairlead.console.pages.endpoints import ENDPOINTS
from fairlead.console.pages.envelope import timestamp
from fairlead.console.pages.holders import Holder
from fairlead.console.pages.list_query import parse_list_query
from fairlead.model.node import Condition
from fairlead.model.pod import Owner, Pod
from fairlead.model.quota.rows import Workload

GPU = {"nvidia.com/gpu": 1}
HOLDERS = next(endpoint for endpoint in ENDPOINTS if endpoint.name == "holders")
USER = "arena.kubeflow.org/console-user"


def owned(of: Pod, kind: str, name: str, **labels: str) -> Pod:
    return structs.replace(
        of, owners=(Owner(kind, name, "uid", True),), labels={**of.labels, **labels}
    )


def holders(seen: BoardState) -> list[Holder]:
    return [entry.row for entry in seen.holders.entries]


def test_all_holders_are_listed_and_no_other() -> None:
    job = training_job()
    pods = [
        pod("bert-worker-0", "gpu-1", GPU, job=job),
        owned(
            pod("web-5d4f-x2", "gpu-1", GPU),
            "ReplicaSet",
            "web-5d4f",
            **{"pod-template-hash": "5d4f"},
        ),
        owned(pod("db-0", "gpu-1", GPU), "StatefulSet", "db"),
        pod("notebook", "gpu-1", GPU),
        pod("waits", "", GPU),
        pod("done", "gpu-1", GPU, phase="Succeeded"),
        pod("no-gpu", "gpu-1", {"cpu": 500}),
    ]
    seen = holders(BoardState(cluster([gpu_node()], pods, [job]), EPOCH))
    assert {(row.name, row.owner_kind, row.owner, row.job) for row in seen} == {
        ("bert-worker-0", "PyTorchJob", "bert", "pytorchjob/bert"),
        ("web-5d4f-x2", "Deployment", "web", ""),
        ("db-0", "StatefulSet", "db", ""),
        ("notebook", "", "", ""),
    }


def test_a_replica_set_that_no_deployment_made_keeps_its_name() -> None:
    alone = owned(pod("set-abc", "gpu-1", GPU), "ReplicaSet", "set")
    (row,) = holders(BoardState(cluster([gpu_node()], [alone]), EPOCH))
    assert (row.owner_kind, row.owner) == ("ReplicaSet", "set")


def test_a_launcher_that_a_batch_job_made_is_of_its_training_job() -> None:
    job = training_job()
    launcher = structs.replace(
        pod("bert-launcher", "gpu-1", GPU, job=job),
        owners=(Owner("Job", "bert-launcher", "uid-batch", True),),
    )
    seen = BoardState(
        cluster([gpu_node()], [launcher, pod("bert-worker-0", "gpu-1", GPU, job=job)], [job]), EPOCH
    )
    assert {(row.owner_kind, row.owner) for row in holders(seen)} == {("PyTorchJob", "bert")}
    assert seen.holders_sentence.values["owners"] == 1


def of_job(name: str, created_at: float, uid: str = "uid-of-job") -> Pod:
    """A pod of a batch Job, created at this time."""
    return structs.replace(
        pod(f"{name}-x7", "gpu-1", GPU),
        owners=(Owner("Job", name, uid, True),),
        created_at=created_at,
    )


MINUTE = int(EPOCH) // 60
"""The CronJob controller names a Job `NAME-MINUTE`: the minute, counted from the epoch, for which
it was scheduled.
"""


@pytest.mark.parametrize(
    ("name", "created_at", "owner"),
    [
        (f"nightly-{MINUTE}", EPOCH + 30, ("CronJob", "nightly")),
        (f"nightly-{MINUTE}", EPOCH + 6 * 86_400, ("CronJob", "nightly")),
        (f"two-words-{MINUTE}", EPOCH - 30, ("CronJob", "two-words")),
        (f"nightly-{MINUTE}", EPOCH + 8 * 86_400, ("Job", f"nightly-{MINUTE}")),
        (f"nightly-{MINUTE + 60}", EPOCH, ("Job", f"nightly-{MINUTE + 60}")),
        ("train-20260105", EPOCH, ("Job", "train-20260105")),
        ("train-7", EPOCH, ("Job", "train-7")),
        (f"{MINUTE}", EPOCH, ("Job", f"{MINUTE}")),
    ],
)
def test_a_scheduled_job_is_its_cron_jobs_and_a_number_in_a_name_makes_none(
    name: str, created_at: float, owner: tuple[str, str]
) -> None:
    (row,) = holders(BoardState(cluster([gpu_node()], [of_job(name, created_at)]), EPOCH))
    assert (row.owner_kind, row.owner) == owner


def test_a_job_that_was_read_contains_its_creator() -> None:
    by_hand = Workload("Job", "batch/v1", "team-a", f"own-{MINUTE}", "uid-own")
    due = Workload(
        "Job", "batch/v1", "team-a", "odd-name", "uid-due", owner="uid-cron", owner_kind="CronJob"
    )
    cron = Workload("CronJob", "batch/v1", "team-a", "weekly", "uid-cron")
    pods = [of_job(f"own-{MINUTE}", EPOCH, "uid-own"), of_job("odd-name", EPOCH, "uid-due")]
    seen = BoardState(
        structs.replace(cluster([gpu_node()], pods), workloads=(by_hand, due, cron)), EPOCH
    )
    assert {(row.owner_kind, row.owner) for row in holders(seen)} == {
        ("Job", f"own-{MINUTE}"),
        ("CronJob", "weekly"),
    }
    without = BoardState(
        structs.replace(cluster([gpu_node()], pods), workloads=(by_hand, due)), EPOCH
    )
    assert {(row.owner_kind, row.owner) for row in holders(without)} == {
        ("Job", f"own-{MINUTE}"),
        ("Job", "odd-name"),
    }


def idle_for(idle: float, bound: float, ratio: float = 0.0) -> int | None:
    held = pod(
        "holds", "gpu-1", GPU, conditions=[Condition("PodScheduled", "True", at=EPOCH - bound)]
    )
    card = reading(holder=held, ratio=ratio, idle_since=EPOCH - idle if not ratio else None)
    (row,) = holders(BoardState(cluster([gpu_node(gpus=1)], [held], [], [card]), EPOCH))
    return row.idle_seconds


def test_a_pod_is_idle_no_longer_than_it_holds_its_cards() -> None:
    assert (idle_for(7200, 600), idle_for(600, 7200), idle_for(0, 600, ratio=0.5)) == (600, 600, 0)


def test_busy_is_not_unknown() -> None:
    held = pod("holds", "gpu-1", {"nvidia.com/gpu": 2})
    assert idle_for(0.0, 600) == 1
    for ratios, idle in (
        ((0.0, 0.5), 0),
        ((0.0, 0.0), 200),
        ((0.0, None), None),
        ((0.5, None), 0),
        ((None, None), None),
    ):
        since = [EPOCH - 200 if ratio == 0.0 else None for ratio in ratios]
        cards = [
            reading(index=n, holder=held, ratio=ratio, idle_since=since[n])
            for n, ratio in enumerate(ratios)
        ]
        (row,) = holders(BoardState(cluster([gpu_node(gpus=2)], [held], [], cards), EPOCH))
        assert row.idle_seconds == idle, ratios


def test_a_card_is_held_since_its_pod_was_bound_and_not_since_it_was_made() -> None:
    bound = pod(
        "holds", "gpu-1", GPU, conditions=[Condition("PodScheduled", "True", at=EPOCH - 100)]
    )
    assert bound.created_at == EPOCH - 300
    (row,) = holders(BoardState(cluster([gpu_node()], [bound]), EPOCH))
    assert row.held_since == timestamp(EPOCH - 100)


def test_user_and_leaf_are_those_of_the_pod_else_of_its_job_and_namespace() -> None:
    job = structs.replace(training_job(), labels={USER: "ann"})
    own = pod("own", "gpu-1", GPU, namespace="nobodys")
    pods = [pod("bert-worker-0", "gpu-1", GPU, job=job), structs.replace(own, labels={USER: "bob"})]
    seen = holders(BoardState(cluster([gpu_node()], pods, [job], quota=quota_tree()), EPOCH))
    assert {(row.name, row.user, row.quota_path) for row in seen} == {
        ("bert-worker-0", "ann", "root.a"),
        ("own", "bob", ""),
    }


def test_on_a_silent_node_the_state_of_a_pod_is_unknown() -> None:
    held = pod("holds", "gpu-1", GPU)
    (row,) = holders(
        BoardState(
            cluster(
                [gpu_node(ready="Unknown")],
                [held],
                [],
                [reading(holder=held, ratio=0.0, idle_since=1.0)],
            ),
            EPOCH,
        )
    )
    assert (row.status, row.idle_seconds) == ("Unknown", None)


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_holders_add_up_to_what_is_allocated_by_any_grouping(first: int) -> None:
    for seed in range(first, first + 20):
        seen = some_cluster(seed)
        rows, allocated = holders(seen), seen.totals.gpus_allocated
        assert sum(row.gpus for row in rows) == pytest.approx(allocated, abs=1e-3), seed
        for by in GROUPINGS:
            groups = [entry.row for entry in holder_groups(rows, by).entries]
            assert sum(group.gpus for group in groups) == pytest.approx(allocated, abs=1e-3), (
                seed,
                by,
            )
            assert sum(group.pods for group in groups) == len(rows), (seed, by)


@pytest.mark.parametrize("by", GROUPINGS)
def test_the_filters_of_a_group_find_its_pods_and_no_others(by: str) -> None:
    """`web` is a part of the name `web-2`; for some pods the user or the leaf is unknown."""
    named = structs.replace(pod("named", "gpu-1", GPU), labels={USER: "ann"})
    elsewhere = pod("web", "gpu-1", GPU, namespace="team-b")
    pods = [
        pod("web", "gpu-1", GPU),
        pod("web-2", "gpu-1", GPU),
        named,
        elsewhere,
        owned(pod("db-0", "gpu-1", GPU), "StatefulSet", "db"),
    ]
    seen = BoardState(cluster([gpu_node(gpus=8)], pods, quota=quota_tree()), EPOCH)
    groups = [entry.row for entry in holder_groups(holders(seen), by).entries]
    assert sum(group.pods for group in groups) == len(pods)
    for group in groups:
        asked = {by: group.name or "-"}
        if by == "owner":
            asked = {"namespace": group.namespace, "owner": f"{group.kind}/{group.name}"}
        query = parse_list_query(list(asked.items()), HOLDERS)
        assert len(matching(seen.holders, query)) == group.pods, (by, group.name)


def test_owners_are_counted_once() -> None:
    sentence = BoardState(living_cluster(), EPOCH).holders_sentence
    assert sentence.text == "2 pods of 1 owner hold 2 GPUs."
