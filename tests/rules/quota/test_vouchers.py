"""Scope `subtree`: every voucher (the node whose min guarantees a unit) is tried, the lowest first.

See docs/spec/quota.md#contested-resources-and-guaranteed-units.
"""

from __future__ import annotations

from tests.rules.quota.small import SmallWorld, tree

from fairlead.model.quota.state import NodeRoom

BY_SUBTREE = {"root": {"fairlead.io/reclaim-scope": "subtree"}}


def test_a_leaf_within_its_min_takes_from_its_sibling() -> None:
    """A budget protects everything that other leaves borrow, so only the lowest voucher works."""
    world = SmallWorld(tree("root[11]{A[9]{a0[7] a1[2]} B[2]}", BY_SUBTREE), budgets={"B/web": 0})
    world.add("B", 4, 1, runs=True, budgets=("B/web",))
    world.add("a1", 4, 1, runs=True)
    world.add("a0", 1, 2, runs=True)
    world.add("a0", 1, 3)
    plan = world.step()
    assert {each.pod.namespace for each in plan.evict} == {"a1"}
    assert len(plan.evict) == 2
    assert world.settle().is_empty
    assert world.running("a0", "a1", "B") == (2, 2, 4)
    assert world.evictions == 2


def test_a_borrower_outside_goes_first() -> None:
    """B borrows 2; A as a whole borrows nothing."""
    world = SmallWorld(tree("root[11]{A[9]{a0[7] a1[2]} B[2]}", BY_SUBTREE))
    world.add("B", 4, 1, runs=True)
    world.add("a1", 4, 1, runs=True)
    world.add("a0", 1, 2, runs=True)
    world.add("a0", 1, 3)
    assert {each.pod.namespace for each in world.step().evict} == {"B"}


def test_a_leaf_above_its_min_takes_nothing_from_its_siblings() -> None:
    """A vouches for a0, which is above its own min, so its victims are outside of A."""
    world = SmallWorld(tree("root[11]{A[9]{a0[1] a1[2]} B[2]}", BY_SUBTREE), budgets={"B/web": 0})
    world.add("B", 4, 1, runs=True, budgets=("B/web",))
    world.add("a1", 4, 1, runs=True)
    world.add("a0", 1, 2, runs=True)
    world.add("a0", 1, 2)
    assert not world.step().evict


def test_of_several_resources_each_has_its_own_voucher() -> None:
    """For cpu the leaf vouches for itself; for gpu only A does."""
    text = (
        "root[cpu 11, gpu 11]{A[cpu 9, gpu 9]{a0[cpu 7, gpu 2] a1[cpu 2, gpu 7]} B[cpu 2, gpu 2]}"
    )
    world = SmallWorld(tree(text, BY_SUBTREE), budgets={"B/web": 0})
    cpu = 1000
    world.add("B", 4, {"cpu": cpu}, runs=True, budgets=("B/web",))
    world.add("a1", 4, {"cpu": cpu}, runs=True)
    world.add("a0", 1, {"cpu": 2 * cpu, "gpu": 2}, runs=True)
    world.add("a0", 1, {"cpu": 3 * cpu, "gpu": 1})
    assert {each.pod.namespace for each in world.step().evict} == {"a1"}


def test_on_cluster_nodes_a_leaf_within_its_min_takes_from_its_sibling() -> None:
    nodes = (NodeRoom("n1", {"gpu": 4}), NodeRoom("n2", {"gpu": 4}), NodeRoom("n3", {"gpu": 4}))
    world = SmallWorld(
        tree("root[12]{A[10]{a0[8] a1[2]} B[2]}", BY_SUBTREE), nodes=nodes, budgets={"B/web": 0}
    )
    world.add("a1", 4, 1, runs=True)
    world.add("a0", 1, 2, runs=True)
    world.add("B", 3, 1, runs=True, budgets=("B/web",))
    for number, key in enumerate(sorted(world.pods)):
        world.change(key, node=f"n{number % 3 + 1}")
    world.add("a0", 1, 3)
    assert [each.pod.key for each in world.step().evict] == ["a1/p002"]
