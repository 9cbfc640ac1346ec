"""Random trees and pods: 1 to 4 levels, two resources, gangs, jobs that are suspended, PodDisruptionBudgets, priorities, users with caps,
non-preemptible pods, lend limits, both scopes.
"""

from __future__ import annotations

import random
from typing import Any

from tests.rules.quota.small import SmallWorld

from fairlead.model.quota.tree import QuotaNode

RESOURCES = ("gpu", "cpu")


def random_tree(rng: random.Random) -> QuotaNode:
    root = {each: rng.randint(4, 40) for each in RESOURCES[: rng.randint(1, 2)]}
    attributes = {"fairlead.io/reclaim-scope": "subtree"} if rng.random() < 0.3 else {}
    children = _children(rng, "n", root, root, rng.randint(1, 3))
    return QuotaNode("n", "n", "", root, dict(root), (), attributes, children)


def _children(rng: random.Random, parent: str, least: dict[str, int], most: dict[str, int], levels: int) -> tuple[QuotaNode, ...]:
    """Children whose mins add up to no more than the parent's, and whose max is no more than the nearest above."""
    count = rng.randint(1, 3)
    left = dict(least)
    found = []
    for number in range(count):
        name = f"{parent}.{number}"
        mine = {each: rng.randint(0, left[each]) for each in least}
        for each in least:
            left[each] -= mine[each]
        ceiling = {each: rng.randint(max(1, mine[each]), most[each]) if most[each] >= max(1, mine[each]) else most[each] for each in most}
        own = ceiling if rng.random() < 0.6 else {}
        below = _children(rng, name, mine, own or most, levels - 1) if levels > 1 and rng.random() < 0.6 else ()
        spaces = () if below else (name,)
        lend = {"gpu": rng.randint(0, mine["gpu"])} if rng.random() < 0.15 else {}
        attributes = {"preempt-policy": "Never"} if not below and rng.random() < 0.1 else {}
        if not below and rng.random() < 0.2:
            attributes["fairlead.io/user-order"] = "fair"
        cap = {"gpu": rng.randint(1, 8)} if not below and rng.random() < 0.2 else {}
        found.append(QuotaNode(name, name, parent, mine, own, spaces, attributes, below, lend, cap))
    return tuple(found)


def random_world(seed: int, *, is_empty: bool = False, **more: Any) -> SmallWorld:
    rng = random.Random(seed)
    tree = random_tree(rng)
    leaves = [leaf.name for leaf in tree.leaves()]
    budgets = {} if is_empty or rng.random() < 0.6 else {f"{leaf}/web": rng.randint(0, 3) for leaf in leaves}
    world = SmallWorld(tree, grace=rng.randint(1, 4), seed=seed, budgets=budgets, **more)
    for _ in range(rng.randint(1, 8)):
        add_random(world, rng, leaves)
        if not is_empty and rng.random() < 0.5:
            world.settle()
    return world


def add_random(world: SmallWorld, rng: random.Random, leaves: list[str]) -> None:
    leaf = rng.choice(leaves)
    request = {each: rng.randint(0, 5) for each in world.tree.min}
    more: dict[str, Any] = {"priority": rng.choice((0, 0, 0, 10, 100)), "user": rng.choice(("", "", "ann", "bob"))}
    count = rng.randint(1, 5)
    kind = rng.random()
    if kind < 0.2:
        more |= {"gang": f"g{rng.randint(0, 99)}", "gang_size": rng.randint(1, count + (rng.random() < 0.1))}
    elif kind < 0.3:
        more["is_preemptible"] = False
    elif kind < 0.45 and world.budgets:
        more["budgets"] = (f"{leaf}/web",)
    elif kind < 0.6:
        world.add_job(leaf, f"job{rng.randint(0, 9999)}", count, request, kind=rng.choice(("Job", "MPIJob")), **more)
        return
    world.add(leaf, count, request, **more)
