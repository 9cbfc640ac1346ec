"""A rolling update in a full leaf: the pods that it replaces are evicted first.

See docs/spec/quota.md#preemption-inside-a-leaf.
"""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.rules.quota.small import SmallWorld, tree


def full_leaf(*, surge: bool = True) -> SmallWorld:
    """`web` at its old revision and `other`, of lower priority, fill the leaf; a pod of the new
    revision waits.
    """
    world = SmallWorld(tree("root[4]{a[4]}"))
    world.add("a", 2, runs=True, priority=10, deployment="web", revision=1)
    world.add("a", 2, runs=True, deployment="other", revision=1)
    world.add("a", 1, priority=10, deployment="web", revision=2, waits_for_surge=not surge)
    return world


@pytest.mark.parametrize("waited", [0, 100])
def test_a_rolling_update_takes_its_predecessors_place_not_another_deployments(waited: int) -> None:
    world = full_leaf()
    world.now += waited
    plan = world.step()
    assert [each.pod.deployment for each in plan.evict] == ["web"] and plan.evict[
        0
    ].pod.revision == 1


def test_a_predecessor_waits_where_only_it_could_make_room() -> None:
    world = full_leaf()
    world.remove(lambda each: each.deployment == "web")
    world.add("a", 2, runs=True, priority=10, deployment="web", revision=1)
    world.pods = {key: replace(each, priority=10) for key, each in world.pods.items()}
    assert not world.step().evict
    world.now += 100
    assert [each.pod.deployment for each in world.step().evict] == ["web"]


def test_an_update_that_does_not_swap_takes_by_priority_only() -> None:
    assert [each.pod.deployment for each in full_leaf(surge=False).step().evict] == ["other"]
