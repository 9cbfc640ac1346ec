"""A plan evicts as few pods as possible: no gang is broken while evicting single pods would suffice
(docs/spec/quota.md#reclaim-from-other-leaves, docs/spec/quota.md#preemption-inside-a-leaf,
docs/spec/quota.md#cluster-nodes).

The oracle tries every legal set of victims of small worlds, and follows the specification alone.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping

import pytest
from tests.rules.quota.small import SmallWorld, tree

from fairlead.model.quota.plan import QuotaPlan
from fairlead.model.quota.state import NodeRoom, QuotaPod
from fairlead.model.quota.tree import QuotaNode

SEEDS = [0, *(pytest.param(first, marks=pytest.mark.long) for first in range(1000, 8000, 1000))]


def evicted(world: SmallWorld) -> Counter[str]:
    """The number of victims by namespace, of one plan."""
    return Counter(each.pod.namespace for each in world.step().evict)


def test_one_pod_goes_rather_than_a_gang() -> None:
    world = SmallWorld(tree("root[40]{research[0] best[0] prod[40]}"))
    world.add("research", 6, 5, runs=True, gang="g", gang_size=6)
    world.add("best", 2, 5, runs=True)
    world.add("prod", 1, 5)
    plan = world.step()
    assert [each.pod.namespace for each in plan.evict] == ["best"]
    assert plan.disrupted == 1


def test_what_a_gang_has_beyond_its_size_goes_before_a_gang() -> None:
    world = SmallWorld(tree("root[40]{research[0] best[0] prod[40]}"))
    world.add("research", 6, 5, runs=True, gang="g", gang_size=6)
    world.add("best", 2, 5, runs=True, gang="h", gang_size=1)
    world.add("prod", 1, 5)
    assert evicted(world) == {"best": 1}


def test_of_several_gangs_the_one_that_frees_least_beyond_the_need() -> None:
    world = SmallWorld(tree("root[60]{research[0] prod[60]}"))
    world.add("research", 2, 5, runs=True, gang="small", gang_size=2)
    world.add("research", 3, 5, runs=True, gang="middle", gang_size=3)
    world.add("research", 7, 5, runs=True, gang="large", gang_size=7)
    world.add("prod", 1, 12)
    plan = world.step()
    assert Counter(each.pod.gang for each in plan.evict) == {"middle": 3}
    assert plan.disrupted == 3


def test_no_gang_is_enough_so_the_largest_goes_with_the_smallest_that_fills_the_rest() -> None:
    world = SmallWorld(tree("root[10]{research[0] prod[10]}"))
    for name, size in (("one", 1), ("two", 2), ("three", 3), ("four", 4)):
        world.add("research", size, 1, runs=True, gang=name, gang_size=size)
    world.add("prod", 1, 5)
    assert Counter(each.pod.gang for each in world.step().evict) == {"four": 4, "one": 1}


def test_a_larger_pod_goes_where_smaller_ones_would_leave_only_a_gang() -> None:
    """The small pod is the first of its leaf to go, and evicting it would bring the leaf to its
    min.
    """
    world = SmallWorld(tree("root[16]{a[4] b[0] prod[12]}"))
    world.add("a", 1, 4, runs=True)
    world.add("a", 1, 1, runs=True)
    world.add("b", 11, 1, runs=True, gang="g", gang_size=11)
    world.add("prod", 1, 3)
    plan = world.step()
    assert [(each.pod.namespace, each.pod.request) for each in plan.evict] == [("a", {"gpu": 4})]


def test_in_a_leaf_a_single_pod_goes_before_a_gang_of_lower_priority() -> None:
    world = SmallWorld(tree("root[10]{a[10]}"))
    world.add("a", 9, 1, runs=True, gang="g", gang_size=9)
    world.add("a", 1, 1, runs=True, priority=10)
    world.add("a", 1, 1, priority=100)
    assert [each.pod.gang for each in world.step().evict] == [""]


def test_in_a_leaf_the_gang_that_frees_least_beyond_the_need() -> None:
    world = SmallWorld(tree("root[10]{a[10]}"))
    world.add("a", 3, 1, runs=True, gang="small", gang_size=3)
    world.add("a", 7, 1, runs=True, gang="large", gang_size=7)
    world.add("a", 1, 1, priority=100)
    assert Counter(each.pod.gang for each in world.step().evict) == {"small": 3}


def test_what_is_above_a_lowered_max_is_given_up_by_single_pods_first() -> None:
    root = tree("root[20]{a[0] b[0]}", {"root": {"fairlead.io/drain-over-max": "true"}})
    world = SmallWorld(root)
    world.add("a", 12, 1, runs=True, gang="g", gang_size=12)
    world.add("b", 8, 1, runs=True)
    world.tree = tree("root[16]{a[0] b[0]}", {"root": {"fairlead.io/drain-over-max": "true"}})
    assert evicted(world) == {"b": 4}


def test_on_cluster_nodes_a_pod_goes_rather_than_a_gang() -> None:
    """n1 runs the gang; on n2 all single pods would have to go."""
    nodes = (NodeRoom("n1", {"gpu": 4}), NodeRoom("n2", {"gpu": 4}))
    world = SmallWorld(tree("root[100]{research[0] best[0] prod[8]}"), nodes=nodes)
    world.add("research", 2, 2, runs=True, gang="g", gang_size=2)
    world.add("best", 4, 1, runs=True)
    world.add("prod", 1, 4)
    assert evicted(world) == {"best": 4}


def test_on_one_cluster_node_a_pod_goes_rather_than_a_gang() -> None:
    nodes = (NodeRoom("n1", {"gpu": 8}),)
    world = SmallWorld(tree("root[100]{research[0] best[0] prod[8]}"), nodes=nodes)
    world.add("research", 2, 2, runs=True, gang="g", gang_size=2)
    world.add("best", 4, 1, runs=True)
    world.add("prod", 1, 3)
    assert evicted(world) == {"best": 3}


def test_on_cluster_nodes_the_gang_of_fewest_pods() -> None:
    nodes = (NodeRoom("n1", {"gpu": 8}),)
    world = SmallWorld(tree("root[100]{research[0] prod[8]}"), nodes=nodes)
    world.add("research", 2, 2, runs=True, gang="small", gang_size=2)
    world.add("research", 4, 1, runs=True, gang="large", gang_size=4)
    world.add("prod", 1, 3)
    assert Counter(each.pod.gang for each in world.step().evict) == {"small": 2}


# --- every legal set of victims -------------------------------------------------------------------


@pytest.mark.parametrize("first", SEEDS)
def test_no_gang_is_broken_where_any_legal_set_without_one_would_do(first: int) -> None:
    spared = broken = 0
    for seed in range(first, first + 1000):
        world = full_world(random.Random(seed))
        waiting = next(pod for pod in world.pods.values() if not pod.is_admitted)
        before = dict(world.pods)
        plan = world.step()
        assert plan.disrupted == len({each.pod.key for each in plan.evict})
        gangs = gangs_broken(world, plan)
        world.pods = before
        if gangs:
            less = next(without_gangs(world, waiting), None)
            assert less is None, f"seed {seed}: breaks {gangs} where {less} would do"
        broken += bool(gangs)
        spared += bool(plan.evict) and not gangs
    assert broken > 50, broken
    assert spared > 50, spared


def full_world(rng: random.Random) -> SmallWorld:
    """A world without free room, in which one pod waits that its leaf's min covers. All priorities
    are 0, so no pod of its own leaf is a victim.
    """
    shape = rng.choice(
        ("root[{0}]{{a[{1}] b[{2}] p[{3}]}}", "root[{0}]{{g[{4}]{{a[{1}] b[{2}]}} p[{3}]}}")
    )
    size = rng.randint(6, 14)
    wants = rng.randint(1, size // 2)
    least = rng.randint(0, 3), rng.randint(0, 3)
    promised = max(wants, size - sum(least) - rng.randint(0, 2))
    least = least if sum(least) + promised <= size else (0, 0)
    root = tree(shape.format(size, *least, promised, sum(least)))
    world = SmallWorld(root, budgets={"a/web": rng.randint(0, 2)} if rng.random() < 0.3 else {})
    left = size
    for number in range(40):
        leaf, asks, count = rng.choice("ab"), rng.randint(1, 4), rng.randint(1, 4)
        if rng.random() < 0.5:
            count = 1
        if asks * count > left:
            continue
        left -= asks * count
        gang = {"gang": f"g{number}", "gang_size": rng.randint(1, count)} if count > 1 else {}
        more = (
            {"budgets": ("a/web",)}
            if leaf == "a" and world.budgets and not gang and rng.random() < 0.5
            else {}
        )
        world.add(leaf, count, asks, runs=True, **gang, **more)
        if left == 0:
            break
    world.add("p", 1, min(promised, max(wants, left + 1)))
    return world


def gangs_broken(world: SmallWorld, plan: QuotaPlan) -> list[str]:
    """Gangs that keep fewer members than they need."""
    lost = Counter((each.pod.namespace, each.pod.gang) for each in plan.evict if each.pod.gang)
    return sorted(
        gang for (leaf, gang), count in lost.items() if count > surplus(world, leaf, gang)
    )


def surplus(world: SmallWorld, leaf: str, gang: str) -> int:
    members = [pod for pod in world.pods.values() if (pod.namespace, pod.gang) == (leaf, gang)]
    return len(members) - members[0].gang_size


def without_gangs(world: SmallWorld, unit: QuotaPod) -> Iterator[list[str]]:
    """All sets of single pods and surplus gang members that may be evicted one after the other, and
    after which the unit fits.
    """
    running = {
        pod.key: pod for pod in world.pods.values() if pod.key != unit.key and not pod.is_stopping
    }
    seen: set[frozenset[str]] = set()

    def after(gone: frozenset[str]) -> Iterator[list[str]]:
        if gone in seen:
            return
        seen.add(gone)
        stays = [pod for key, pod in running.items() if key not in gone]
        used = usage(world.tree, stays)
        above = [node for node in world.tree.walk() if unit.namespace in spaces(node)]
        blocking = [
            node
            for node in above
            if used[node.name] + unit.request["gpu"] > node.max.get("gpu", 999)
        ]
        if not blocking:
            yield sorted(gone)
            return
        for pod in stays:
            if may_go(world, pod, gone) and any(
                is_lending(node, pod, used, {each.name for each in above}) for node in blocking
            ):
                yield from after(gone | {pod.key})

    return after(frozenset())


def may_go(world: SmallWorld, pod: QuotaPod, gone: frozenset[str]) -> bool:
    taken = [world.pods[key] for key in gone]
    if pod.gang and surplus(world, pod.namespace, pod.gang) <= sum(
        (each.namespace, each.gang) == (pod.namespace, pod.gang) for each in taken
    ):
        return False
    return all(
        world.budgets[budget] > sum(budget in each.budgets for each in taken)
        for budget in pod.budgets
    )


def is_lending(node: QuotaNode, pod: QuotaPod, used: Mapping[str, int], path: set[str]) -> bool:
    """Whether all nodes between `node` and the pod's leaf are above their min, except those on the
    path of the waiting unit.
    """
    below = [each for each in node.walk() if pod.namespace in spaces(each) and each is not node]
    return (
        bool(below)
        and below[-1].name not in path
        and all(each.name in path or used[each.name] > each.min["gpu"] for each in below)
    )


def usage(root: QuotaNode, pods: list[QuotaPod]) -> dict[str, int]:
    return {
        node.name: sum(pod.request["gpu"] for pod in pods if pod.namespace in spaces(node))
        for node in root.walk()
    }


def spaces(node: QuotaNode) -> set[str]:
    return {space for leaf in node.leaves() for space in leaf.namespaces}
