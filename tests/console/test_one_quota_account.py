"""The page Quota, My work, `quota tree`, the metrics and the sentences of a plan show the same
numbers.

Over random trees in clusters that have less or more than the mins promise. Each is settled first:
admitted pods have no gate any more, evicted pods are gone. The amount that could be borrowed is
tried: a pod that requests it is admitted, and a pod that requests one more is not.
"""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from msgspec.structs import replace
from tests.cli.command import run_command
from tests.console.clusters import EPOCH, GATED, cluster, gpu_node, pod
from tests.rules.quota.one_account import wrong

from fairlead.console.boards.board_state import BoardState
from fairlead.console.pages.mine import LeafResource
from fairlead.model.node import Condition
from fairlead.model.pod import Owner, Pod
from fairlead.model.quota.plan import QuotaPlan
from fairlead.model.quota.tree import QuotaNode, QuotaTree
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.model.source import Source
from fairlead.rules.metrics.cluster import native_families
from fairlead.rules.quota.plan import plan_quota
from fairlead.rules.quota.sight import quota_state
from fairlead.rules.quota.usage import quota_usage
from fairlead.rules.reports.cluster import summarize

GPU = "nvidia.com/gpu"
CLAIM = Condition("fairlead.io/QuotaAdmitted", "False", "WaitingForEvictions", "", EPOCH - 5)


def leaf(
    name: str, least: int, most: int | None = None, parent: str = "root", lend: int | None = None
) -> QuotaNode:
    bound = {} if most is None else {GPU: most}
    return QuotaNode(
        name,
        name,
        parent,
        {GPU: least},
        bound,
        (name.replace("root.", "team-"),),
        lend_limit={} if lend is None else {GPU: lend},
    )


def root_of(amount: int, *children: QuotaNode) -> QuotaNode:
    return QuotaNode("root", "root", "", {GPU: amount}, {GPU: amount}, children=children)


def asks(namespace: str, number: int, gpus: int = 1, *, waits: bool = False, **more: Any) -> Pod:
    made = pod(
        f"{namespace}-{number}",
        "" if waits else "gpu-1",
        {GPU: gpus},
        namespace=namespace,
        gates=GATED if waits else (),
    )
    return replace(
        made,
        owners=(Owner("ReplicaSet", namespace, f"uid-{namespace}", True),),
        created_at=EPOCH - 500 + number,
        **more,
    )


def seen(root: QuotaNode, there: int, *pods: Pod) -> ClusterSnapshot:
    """A cluster with one node that has all GPUs."""
    sources = {name: Source(name, good_at=EPOCH) for name in ("nodes", "pods", "elasticquotatrees")}
    whole = cluster([gpu_node(gpus=there)], pods, quota=root, sources=sources)
    return replace(
        whole, quota_tree=QuotaTree("elasticquotatree", "kube-system", root), taken_at=EPOCH
    )


def settled(snapshot: ClusterSnapshot) -> tuple[ClusterSnapshot, QuotaPlan]:
    """The cluster as the controller leaves it, and a plan of what still waits."""
    for _ in range(20):
        plan = plan_quota(quota_state(snapshot, EPOCH))
        if not plan.admit and not plan.evict and not any(claim.is_new for claim in plan.claims):
            return snapshot, plan
        admitted = {each.pod.key for each in plan.admit}
        gone = {each.pod.key for each in plan.evict}
        claims = {each.key for claim in plan.claims for each in claim.pods}
        pods = [
            replace(each, gates=(), node="gpu-1", phase="Running")
            if each.key in admitted
            else replace(each, conditions=(CLAIM,))
            if each.key in claims
            else each
            for each in snapshot.pods
            if each.key not in gone
        ]
        snapshot = seen(snapshot.quota or root_of(0), snapshot.nodes[0].allocatable[GPU], *pods)
    raise AssertionError("it does not settle")


def random_snapshot(seed: int) -> ClusterSnapshot:
    """Leaves whose mins add up to root's; about half of the clusters have less than that. In some a
    claimant waits for its victims to stop.
    """
    chance = random.Random(seed)
    mins = [chance.randint(0, 10) for _ in range(chance.randint(2, 4))]
    total = max(1, sum(mins))
    leaves = [
        leaf(
            f"root.{number}",
            least,
            chance.choice((None, least + chance.randint(0, 6))),
            lend=chance.randint(0, least) if chance.random() < 0.3 else None,
        )
        for number, least in enumerate(mins)
    ]
    there = chance.randint(max(1, total // 3), total + 4)
    pods: list[Pod] = []
    left = there
    for number in range(chance.randint(2, 14)):
        space, gpus = f"team-{chance.randrange(len(mins))}", chance.randint(1, 4)
        waits = chance.random() < 0.4 or gpus > left
        left -= 0 if waits else gpus
        stops = not waits and chance.random() < 0.3
        pods.append(
            asks(space, number, gpus, waits=waits, **({"deleted_at": EPOCH - 5} if stops else {}))
        )
    return seen(root_of(total, *leaves), there, *pods)


def metrics(snapshot: ClusterSnapshot) -> dict[str, dict[str, float]]:
    """The metrics of GPUs by the kind of number and the path of the node."""
    found: dict[str, dict[str, float]] = {}
    for family in native_families(summarize(snapshot, (), 0)):
        if family.name.startswith("fairlead_quota_") and family.metric.labels[-1] == "resource":
            pairs = zip(family.keys, family.values, strict=True)
            found[family.name.removeprefix("fairlead_quota_")] = {
                key[0]: value or 0 for key, value in pairs if key[-1] == GPU
            }
    return found


def tree_reported(snapshot: ClusterSnapshot) -> dict[str, dict[str, Any]]:
    """`quota tree -o json`, by name."""
    nodes = json.loads(run_command("quota tree -o json", snapshot, "fairlead").out)["nodes"]
    return {node["name"]: node for node in nodes}


def mine(board: BoardState, namespace: str) -> LeafResource:
    [found] = [
        each
        for own in board.my_work("", namespace).leaves
        for each in own.resources
        if each.resource == GPU
    ]
    return found


def apart(snapshot: ClusterSnapshot, plan: QuotaPlan) -> list[str]:
    """Places that show different numbers."""
    board, reported, printed = (
        BoardState(snapshot, EPOCH),
        metrics(snapshot),
        tree_reported(snapshot),
    )
    found: list[str] = []

    def same(what: str, **numbers: float) -> None:
        if len(set(numbers.values())) > 1:
            found.append(f"{what}: {numbers}")

    for row in board.quota_list:
        if row.resource != GPU:
            continue
        path, node = row.path, printed[row.name]
        texts = {
            key: float(node.get(key, {}).get(GPU, 0))
            for key in ("used", "request", "borrowed", "claimed", "guaranteed", "min")
        }
        least = float(node.get("countedMin", node["min"]).get(GPU, texts["min"]))
        same(f"{path} min", page=row.min, metric=reported["min"][path], tree=least)
        same(
            f"{path} written",
            page=row.min_written,
            metric=reported["min_written"][path],
            tree=texts["min"],
        )
        for key, page in {
            "used": row.used,
            "request": row.requested,
            "borrowed": row.borrowed,
            "claimed": row.claimed,
        }.items():
            same(f"{path} {key}", page=page, metric=reported[key][path], tree=texts[key])
        same(
            f"{path} guaranteed",
            metric=reported["guaranteed"][path],
            tree=texts["guaranteed"],
            both=min(row.used, row.min),
        )
        same(f"{path} over min", metric=reported["borrowed"][path], both=max(0, row.used - row.min))
        for space in row.namespaces:
            own = mine(board, space) if row.min_written or row.max or row.used else None
            if own is not None:
                same(f"{space} used", page=row.used, mine=own.used)
                same(f"{space} guaranteed", page=row.min, mine=own.guaranteed)
                same(f"{space} written", page=row.min_written, mine=own.guaranteed_written)
    table = {use.node.name: use.own for use in quota_usage(snapshot)}
    state = quota_state(snapshot, EPOCH)
    return found + [each for row in plan.waiting for each in wrong(row, table, state)]


def most_given(snapshot: ClusterSnapshot, namespace: str) -> int:
    """The largest request with which one more pod in the namespace is admitted at once, before all
    pods that wait without a claim.
    """
    state = quota_state(snapshot, EPOCH)
    kept = [each for each in state.pods if each.is_admitted or each.claim_since is not None]
    for gpus in range(1, 60):
        [probe] = quota_state(
            seen(state.tree, 1, asks(namespace, 999, gpus, waits=True)), EPOCH
        ).pods
        plan = plan_quota(replace(state, pods=(*kept, probe)))
        if all(each.pod.name != probe.name for each in plan.admit):
            return gpus - 1
    return 60


@pytest.mark.parametrize(
    "first", [0, *(pytest.param(first, marks=pytest.mark.long) for first in range(40, 400, 40))]
)
def test_every_place_shows_the_same_numbers(first: int) -> None:
    scarce = borrows = 0
    for seed in range(first, first + 40):
        snapshot, plan = settled(random_snapshot(seed))
        assert apart(snapshot, plan) == [], seed
        for use in quota_usage(snapshot):
            scarce += bool(use.own.counted_min)
            if use.node.is_leaf and (use.node.min[GPU] or use.own.used or use.node.max.get(GPU)):
                [space] = use.node.namespaces
                charged = use.own.used.get(GPU, 0) + use.own.claimed.get(GPU, 0)
                most = max(0, most_given(snapshot, space) - max(0, use.min_of(GPU) - charged))
                assert mine(BoardState(snapshot, EPOCH), space).borrowable == most, (seed, space)
                borrows += most > 0
    assert scarce > 10 and borrows > 10, "such worlds are among them"


def test_my_work_of_a_leaf_whose_min_counts_as_less() -> None:
    """24 are promised and 20 exist, so the 12 of a count as 10. a uses 12, b 8; a pod of 4 waits,
    and nothing is left to borrow.
    """
    pods = [asks("team-a", number) for number in range(12)] + [
        asks("team-b", 20 + number) for number in range(8)
    ]
    snapshot, plan = settled(
        seen(
            root_of(24, leaf("root.a", 12), leaf("root.b", 12)),
            20,
            *pods,
            asks("team-a", 40, 4, waits=True),
        )
    )
    board = BoardState(snapshot, EPOCH)
    own = mine(board, "team-a")
    assert (own.used, own.guaranteed, own.borrowable) == (12, 10, 0)
    [row] = plan.waiting
    assert "root.a uses 12 of guaranteed 10" in row.message
    assert "configured 24, available 20, so 12 counts as 10" in row.message
    assert (
        run_command("quota why team-a/team-a-40", snapshot, "fairlead").out.splitlines()[0]
        == row.message
    )
    reported = metrics(snapshot)
    numbers = {
        name: reported[name]["root.a"]
        for name in ("min", "min_written", "used", "borrowed", "guaranteed")
    }
    assert numbers == {"min": 10, "min_written": 12, "used": 12, "borrowed": 2, "guaranteed": 10}


def test_quota_tree_of_a_cluster_with_19_of_22_gpus() -> None:
    """6 counts as 5, floor(6 x 19 / 22). a uses 6, so it borrows 1, in the table as well as in the
    sentence.
    """
    pods = [asks("team-a", number) for number in range(6)] + [
        asks("team-b", 20 + number) for number in range(13)
    ]
    root = root_of(22, leaf("root.a", 6), leaf("root.b", 16))
    snapshot, plan = settled(seen(root, 19, *pods, asks("team-a", 40, waits=True)))
    printed = run_command("quota tree", snapshot, "fairlead").out
    line = next(line for line in printed.splitlines() if line.split()[:2] == ["a", GPU])
    assert line.split()[2:5] == ["5", "6", "1"], printed
    assert f"root.a: {GPU} configured 22, available 19, so 6 counts as 5." in printed
    [row] = plan.waiting
    assert "root.a uses 6 of guaranteed 5" in row.message and "root.a +1" in row.message
    assert apart(snapshot, plan) == []
