"""Gangs that lost a member come after all claimants, and one plan never both fills and evicts such
a gang.

See docs/spec/quota.md#order-of-candidates.
"""

from __future__ import annotations

from tests.rules.quota.small import SmallWorld, tree


def lame_world(text: str = "root[6]{a[0] b[6]}", *, size: int = 3, priority: int = 0) -> SmallWorld:
    """A gang of `a` that lacks one pod. That pod waits, and is older than all pods that a test adds
    later.
    """
    world = SmallWorld(tree(text))
    world.add("a", size - 1, 1, runs=True, gang="g", gang_size=size)
    world.add("a", 1, 1, gang="g", gang_size=size, priority=priority)
    return world


def test_a_claimant_goes_before_a_gang_that_lost_a_member() -> None:
    world = lame_world()
    world.add("b", 3, 1, runs=True)
    world.add("b", 1, 1)
    world.change("b/p004", claim_since=world.now)  # its victims have gone: there is room for one
    plan = world.step()
    assert [each.pod.key for each in plan.admit] == ["b/p004"]
    assert not plan.evict


def test_a_gang_that_lost_a_member_goes_before_one_that_only_waits() -> None:
    world = lame_world("root[6]{a[0] b[6] c[0]}")
    world.add("b", 3, 1, runs=True)
    world.add("c", 1, 1, priority=100)
    assert [each.pod.key for each in world.step().admit] == ["a/p003"]


def test_one_plan_does_not_fill_a_gang_and_evict_it() -> None:
    world = lame_world()
    world.add("b", 3, 1, runs=True)
    world.add("b", 1, 2)
    plan = world.step()
    assert [each.pod.key for each in plan.evict] == ["a/p001", "a/p002"]
    assert not plan.admit
    assert world.settle().waiting[0].message
    assert world.running("a", "b") == (0, 4)
    assert world.evictions == 2


def test_the_missing_member_does_not_join_a_gang_that_the_same_plan_evicts() -> None:
    """The claimant evicts first, and the room would suffice for both."""
    world = lame_world("root[6]{a[0] b[6]}", size=4)
    world.add("b", 3, 1, runs=True)
    world.add("b", 1, 1)
    world.change("b/p004", claim_since=world.now)
    plan = world.step()
    assert {each.pod.namespace for each in plan.evict} == {"a"}
    assert not plan.admit
    assert world.settle().is_empty
    assert world.evictions == 3


def test_the_missing_member_of_higher_priority_does_not_evict_the_others() -> None:
    world = lame_world("root[3]{a[3] b[0]}", priority=100)
    world.add("a", 1, 1, runs=True, is_preemptible=False)
    plan = world.step()
    assert not plan.evict
    assert not plan.admit


def test_what_is_beyond_a_gangs_size_does_not_join_it_when_it_is_evicted() -> None:
    world = SmallWorld(tree("root[6]{a[0] b[6]}"))
    world.add("a", 3, 1, runs=True, gang="g", gang_size=3)
    world.add("b", 2, 1, runs=True)
    world.add("a", 1, 1, gang="g", gang_size=3)
    world.add("b", 1, 2)
    plan = world.step()
    assert {each.pod.key for each in plan.evict} == {"a/p001", "a/p002", "a/p003"}
    assert not [each for each in plan.admit if each.pod.namespace == "a"]
