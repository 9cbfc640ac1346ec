"""The worked scenarios of docs/spec/quota.md#the-40-core-demo, docs/spec/quota.md#worked-scenarios,
played in memory, plan after plan.
"""

from __future__ import annotations

import pytest
from tests.rules.quota.small import SmallWorld, tree

DEMO = "root[40]{a[20/40]{a1[10/20] a2[10/20]} b[20/40]{b1[10/20] b2[10/20]}}"
LEAVES = ("a1", "a2", "b1", "b2")


@pytest.mark.parametrize("seed", range(30))
def test_the_demo_of_document_004(seed: int) -> None:
    world = SmallWorld(tree(DEMO), grace=5, seed=seed)
    seen = []
    for leaf in LEAVES:
        world.add(leaf, 5, 5)
        world.settle()
        seen.append((world.running(*LEAVES), world.evictions))
    assert seen == [((4, 0, 0, 0), 0), ((4, 4, 0, 0), 0), ((3, 3, 2, 0), 2), ((2, 2, 2, 2), 4)]
    assert world.reasons("a1") == {"WaitingForIdleQuota": 3}


def test_the_demo_by_subtree() -> None:
    world = SmallWorld(tree(DEMO, {"root": {"fairlead.io/reclaim-scope": "subtree"}}))
    seen = []
    for leaf in LEAVES:
        world.add(leaf, 5, 5)
        world.settle()
        seen.append(world.running(*LEAVES))
    assert (seen, world.evictions) == ([(4, 0, 0, 0), (4, 4, 0, 0), (2, 2, 4, 0), (2, 2, 2, 2)], 6)


def test_the_demos_sentences() -> None:
    world = SmallWorld(tree(DEMO))
    world.add("a1", 5, 5)
    world.settle()
    assert world.sentences("a1") == ["gpu asks 5; a1 uses 20 of max 20"]
    for leaf in ("a2", "b1"):
        world.add(leaf, 5, 5)
        world.settle()
    assert world.sentences("b1")[0] == (
        "gpu asks 5; root 40/40 in use; b1 uses 10 of guaranteed 10, so it may only borrow "
        "idle quota; biggest borrowers: a1 +5, a2 +5"
    )


def test_depth_4() -> None:
    world = SmallWorld(tree("root[40]{a[20]{x[10/15]{x1[5/40] x2[5/40]} y[10]} b[20]}"))
    world.add("x1", 8, 5)
    world.settle()
    assert world.running("x1") == (3,)
    assert world.sentences("x1")[0] == "gpu asks 5; x uses 15 of max 15"
    world.add("x2", 1, 5)
    world.settle()
    assert (world.running("x1", "x2"), world.evictions) == ((2, 1), 1)
    assert [key.partition("/")[0] for key in world.victims] == ["x1"]


def test_a_leaf_without_min_gives_all_back() -> None:
    world = SmallWorld(tree("root[40]{be[0] o[40]}"))
    world.add("be", 8, 5)
    world.settle()
    world.add("o", 8, 5)
    world.settle()
    assert (world.running("be", "o"), world.evictions) == ((0, 8), 8)


def test_unallocated_quota_is_first_come() -> None:
    world = SmallWorld(tree("root[40]{a[10] b[10]}"))
    world.add("a", 6, 5, runs=True)
    world.add("b", 4, 5)
    world.settle()
    assert (world.running("a", "b"), world.evictions) == ((6, 2), 0)


def test_only_what_is_contested_counts() -> None:
    """`x` is above its min in cpu, of which there is enough. A unit that needs a GPU takes it from
    `y`, which borrows GPUs.
    """
    world = SmallWorld(
        tree("root[cpu 60, gpu 4]{x[cpu 0, gpu 2] y[cpu 20, gpu 0] z[cpu 20, gpu 2]}")
    )
    world.add("x", 2, {"cpu": 10}, runs=True)
    world.add("y", 4, {"cpu": 4, "gpu": 1}, runs=True)
    world.add("z", 2, {"cpu": 4, "gpu": 1})
    world.settle()
    assert (world.running("x", "y", "z"), world.evictions) == ((2, 2, 2), 2)
    assert {key.partition("/")[0] for key in world.victims} == {"y"}


def test_gpu_memory_in_whole_pods() -> None:
    world = SmallWorld(tree("root[32]{a[16] b[16]}"))
    world.add("a", 8, 3, runs=True)
    world.add("b", 5, 3)
    world.settle()
    assert (world.running("a", "b"), world.evictions) == ((5, 5), 3)


def test_resources_that_the_tree_does_not_know_are_nobodys_business() -> None:
    world = SmallWorld(tree("root[10]{a[10]}"))
    world.add("a", 1, {"gpu": 5, "memory": 1 << 60})
    world.settle()
    assert world.running("a") == (1,)


def test_priority_in_a_leaf() -> None:
    world = SmallWorld(tree("root[20]{a[10] b[10]}"))
    world.add("a", 4, 5, runs=True)
    world.add("a", 1, 5, priority=100)
    world.settle()
    assert (world.running("a"), world.evictions, world.victims) == ((4,), 1, ["a/p004"])


def test_no_eviction_inside_a_leaf_with_never() -> None:
    world = SmallWorld(tree("root[20]{a[10] b[10]}", {"a": {"preempt-policy": "Never"}}))
    world.add("a", 4, 5, runs=True)
    world.add("a", 1, 5, priority=100)
    world.settle()
    assert (world.running("a"), world.evictions) == ((4,), 0)


def test_the_bigger_borrower_gives_back() -> None:
    world = SmallWorld(tree("root[30]{a1[5] a2[5] b[20]}"))
    world.add("a1", 4, 5, runs=True)
    world.add("a2", 2, 5, runs=True)
    world.add("b", 2, 5)
    world.settle()
    assert (world.running("a1", "a2", "b"), {key[:2] for key in world.victims}) == (
        (2, 2, 2),
        {"a1"},
    )


def test_a_gang_takes_all_or_nothing() -> None:
    world = SmallWorld(tree("root[4]{a[0] b[4]}"))
    world.add("a", 3, 1, runs=True)
    world.add("b", 4, 1, gang="g", gang_size=4)
    world.settle()
    assert (world.running("a", "b"), world.evictions) == ((0, 4), 3)


def test_a_gang_that_cannot_have_all_takes_nothing() -> None:
    world = SmallWorld(tree("root[4]{a[0] b[4]}"), budgets={"a/web": 0})
    world.add("a", 2, 1, runs=True)
    world.add("a", 1, 1, runs=True, budgets=("a/web",))
    world.add("b", 4, 1, gang="g", gang_size=4)
    world.settle()
    assert (world.running("a", "b"), world.evictions) == ((3, 0), 0)


def test_a_gang_above_its_min_takes_nothing() -> None:
    world = SmallWorld(tree("root[4]{a[2] b[2]}"))
    world.add("a", 4, 1, runs=True)
    world.add("b", 4, 1, gang="g", gang_size=4)
    world.settle()
    assert (world.running("a", "b"), world.evictions) == ((4, 0), 0)


def test_an_incomplete_gang() -> None:
    world = SmallWorld(tree("root[4]{a[4]}"))
    world.add("a", 3, 1, gang="g", gang_size=4)
    world.settle()
    assert (world.running("a"), world.sentences("a")) == ((0,), ["gang g: 3/4 pods exist"])


def test_a_disruption_budget_is_hard() -> None:
    world = SmallWorld(tree("root[20]{a1[0] a2[0] b[20]}"), budgets={"a1/web": 0})
    world.add("a1", 3, 5, runs=True, budgets=("a1/web",))
    world.add("a2", 1, 5, runs=True)
    world.add("b", 2, 5)
    world.settle()
    assert (world.running("a1", "a2", "b"), world.evictions) == ((3, 0, 1), 1)
    assert world.reasons("b") == {"PDBBlocked": 1}
    assert world.sentences("b") == [
        "guaranteed by b; 3 pods of a1 are protected by PodDisruptionBudget a1/web (allows 0)"
    ]


def test_non_preemptible_pods_stay_within_the_min_and_are_nobodys_victims() -> None:
    world = SmallWorld(tree("root[16]{ml[8] b[8]}"))
    world.add("ml", 9, 1, is_preemptible=False)
    world.settle()
    assert world.running("ml") == (8,)
    message = (
        "gpu asks 1; non-preemptible pods use 8 of guaranteed 8 of ml; label preemptible=true to "
        "borrow"
    )
    assert world.sentences("ml") == [message]
    world.add("b", 8, 1)
    world.settle()
    assert (world.running("ml", "b"), world.evictions) == ((8, 8), 0)


def test_a_user_has_his_cap() -> None:
    world = SmallWorld(tree("root[16]{a[16]}"), user_caps={("a", "bob"): {"gpu": 4}})
    world.add("a", 3, 2, user="bob")
    world.add("a", 1, 2, user="eve")
    world.settle()
    assert world.running("a") == (3,)
    assert world.sentences("a") == ["gpu asks 2; bob uses 4 of 4 allowed in a"]


def test_what_is_larger_than_a_ceiling_never_runs() -> None:
    world = SmallWorld(tree("root[40]{a[10/20] b[30]}"))
    world.add("a", 1, 50)
    world.add("a", 1, 30)
    world.settle()
    assert sorted(world.sentences("a")) == [
        "gpu asks 30; a max is 20; this pod can never run here",
        "gpu asks 50; a max is 20; this pod can never run here",
    ]


def test_a_rolling_update_in_a_full_leaf_swaps_pod_by_pod() -> None:
    """A newer pod of the same Deployment replaces an older one after it has waited for a minute."""
    world = SmallWorld(tree("root[4]{a[4]}"))
    world.add("a", 2, 2, runs=True, deployment="a/web", revision=1, owner="none")
    world.add("a", 1, 2, deployment="a/web", revision=2)
    world.settle()
    assert (world.running("a"), world.evictions) == ((2,), 0)
    world.now += 60
    world.settle()
    assert (world.running("a"), world.evictions) == ((2,), 1)


def test_strangers_are_not_counted() -> None:
    world = SmallWorld(tree("root[4]{a[4]}"))
    world.add("elsewhere", 3, 4)
    world.add("a", 2, 2)
    world.settle()
    assert world.running("a", "elsewhere") == (2, 0)


def test_a_victim_that_is_not_needed_is_spared() -> None:
    """The newest pod would go first; when the next victim alone frees enough, the newest stays."""
    world = SmallWorld(tree("root[10]{a[0] b[10]}"))
    for size in (5, 4, 1):
        world.add("a", 1, size, runs=True)
    world.add("b", 1, 4)
    world.settle()
    assert (world.victims, world.running("a", "b")) == (["a/p002"], (2, 1))


def test_a_claimant_with_victims_goes_before_a_more_important_one() -> None:
    world = SmallWorld(tree("root[10]{a[0] b[5] c[5]}"), grace=3)
    world.add("a", 2, 5, runs=True)
    world.add("b", 1, 5)
    assert [each.for_unit for each in world.step().evict] == ["b/p001"]
    world.add("c", 1, 5, priority=100)
    assert [each.for_unit for each in world.step().evict] == ["c/p001"]
    world.settle()
    assert (world.running("a", "b", "c"), world.evictions) == ((0, 1, 1), 2)


def test_a_leaf_at_its_min_is_protected_as_a_whole() -> None:
    world = SmallWorld(tree("root[15]{a[5] b[5] c[0]}"))
    world.add("c", 2, 5, runs=True)
    world.add("a", 1, 5, runs=True)
    world.add("b", 1, 5)
    world.settle()
    assert (world.running("a", "b", "c"), [key[:1] for key in world.victims]) == ((1, 1, 1), ["c"])


def test_a_leaf_at_its_min_is_protected_also_when_no_other_can_go() -> None:
    world = SmallWorld(tree("root[15]{a[5] b[5] c[0]}"), budgets={"c/web": 0})
    world.add("c", 2, 5, runs=True, budgets=("c/web",))
    world.add("a", 1, 5, runs=True)
    world.add("b", 1, 5)
    world.settle()
    assert (world.running("a", "b", "c"), world.evictions) == ((1, 0, 2), 0)
