"""The preview of an edited quota tree names exactly the pods that saving then evicts: random trees
with the quota controller's own decider over a cluster that is slow and unordered.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from tests.rules.quota.fake_cluster import NODE, FakeCluster

from fairlead.console.boards.board_state import BoardState
from fairlead.console.boards.quota.tree_edit import (
    TreeEdit,
    node_orders,
    read_tree,
    tree_edit,
)
from fairlead.console.pages.quota_tree import QuotaTreeOrder
from fairlead.model.quota.tree import QuotaTree
from fairlead.model.snapshot import build_snapshot
from fairlead.model.source import Source

LEAVES = ("root.a.1", "root.a.2", "root.b.1", "root.b.2")


def stored(mins: Mapping[str, int], maxes: Mapping[str, int]) -> dict[str, Any]:
    """A tree of 40 cores with four leaves, as the API server has it; amounts in fours."""

    def node(name: str, least: int, most: int, **more: Any) -> dict[str, Any]:
        return {"name": name, "min": {"cpu": 4 * least}, "max": {"cpu": 4 * most}, **more}

    def inner(name: str) -> dict[str, Any]:
        below = [leaf for leaf in LEAVES if leaf.startswith(f"{name}.")]
        children = [node(each, mins[each], maxes[each], namespaces=[space(each)]) for each in below]
        return node(name, 5, 10, children=children)

    root = node("root", 10, 10, children=[inner("root.a"), inner("root.b")])
    return {
        "apiVersion": "scheduling.sigs.k8s.io/v1beta1",
        "kind": "ElasticQuotaTree",
        "metadata": {"name": "elasticquotatree", "namespace": "kube-system", "uid": "tree-uid"},
        "spec": {"root": root},
    }


def space(leaf: str) -> str:
    return leaf.replace("root.", "ns-").replace(".", "-")


def board(world: FakeCluster, tree: QuotaTree) -> BoardState:
    snapshot = build_snapshot(
        taken_at=world.now,
        nodes=[NODE],
        pods=list(world.pods.values()),
        namespaces=list(world.namespaces.values()),
        quota_tree=tree,
        sources=[Source(name, good_at=world.now) for name in ("nodes", "pods", "namespaces")],
    )
    return BoardState(snapshot, world.now)


def previewed(world: FakeCluster, before: dict[str, Any], after: dict[str, Any]) -> TreeEdit:
    order = QuotaTreeOrder(node_orders(read_tree(after)))
    return tree_edit(board(world, read_tree(before)), before, order, {}, {})


def named_and_gone(seed: int, sizes: Sequence[int]) -> tuple[set[str], set[str]]:
    """Pods that the preview of a raised min names, and those that are evicted after the write."""
    rng = random.Random(seed)
    mins = {leaf: rng.choice((0, 1, 2)) for leaf in LEAVES}
    maxes = {leaf: rng.choice((4, 6, 10)) for leaf in LEAVES}
    before = stored(mins, maxes)
    root = read_tree(before).root
    assert root is not None
    world = FakeCluster(root, seed=seed)
    for size in sizes:
        for leaf in rng.sample(LEAVES, len(LEAVES)):
            name, count = f"web-{size}", rng.choice((2, 4, 8)) * 4 // (size * len(sizes))
            world.create("Deployment", space(leaf), name, count, {"cpu": 1000 * size})
            world.settle()
    edit = previewed(world, before, stored({**mins, rng.choice(LEAVES): 3}, maxes))
    assert edit.faults == () and edit.preview.what_if is not None
    there = {uid: f"{pod.namespace}/{pod.name}" for uid, pod in world.pods.items()}
    named = {f"{each.namespace}/{each.pod}" for each in edit.preview.what_if.evicted}
    old = len(world.evictions)
    world.set_tree(read_tree({**before, "spec": {"root": edit.root}}).root)
    world.settle()
    gone = {there[uid] for uid in world.evictions[old:] if uid in there}
    return named & set(there.values()), gone


@pytest.mark.parametrize("sizes", [(4,), (3, 1, 2)], ids=str)
def test_the_preview_names_exactly_the_pods_that_saving_evicts(sizes: Sequence[int]) -> None:
    found = [named_and_gone(seed, sizes) for seed in range(12)]
    assert [named for named, _ in found] == [gone for _, gone in found]
    assert sum(bool(gone) for _, gone in found) >= 3, "few of these worlds evict at all"
