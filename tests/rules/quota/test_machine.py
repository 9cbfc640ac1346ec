"""The quota machine against a cluster in memory: the demo of quota contract 4, faults and crashes."""

from __future__ import annotations

import pytest
from tests.rules.quota.fake_cluster import FakeCluster, Faults
from tests.rules.quota.small import tree

DEMO = "root[40]{a[20/40]{a1[10/20] a2[10/20]} b[20/40]{b1[10/20] b2[10/20]}}"
LEAVES = ("a1", "a2", "b1", "b2")


def play_demo(seed: int, faults: Faults) -> FakeCluster:
    world = FakeCluster(tree(DEMO, resource="cpu"), seed=seed, faults=faults)
    seen = []
    for leaf in LEAVES:
        world.create("Deployment", leaf, "nginx", 5, 5)
        world.settle()
        seen.append((world.running(*LEAVES), len(world.evictions)))
    assert seen == [((4, 0, 0, 0), 0), ((4, 4, 0, 0), 0), ((3, 3, 2, 0), 2), ((2, 2, 2, 2), 4)], f"seed {seed}"
    return world


@pytest.mark.parametrize("seed", range(10))
def test_the_demo_with_late_watches_and_any_grace(seed: int) -> None:
    world = play_demo(seed, Faults())
    assert world.reasons("a1") == ["WaitingForIdleQuota"] * 3
