"""Random trees and pods: 1 to 4 levels, two resources, gangs, jobs that can be suspended,
PodDisruptionBudgets, priorities, users with caps, non-preemptible pods, lend limits, both scopes. A
third of the worlds has cluster nodes, with more or less capacity than the tree promises.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any, NamedTuple

from msgspec.structs import replace
from tests.rules.quota.small import SmallWorld

from fairlead.model.quota.state import NodeRoom
from fairlead.model.quota.tree import QuotaNode

RESOURCES = ("gpu", "cpu")


def random_tree(rng: random.Random) -> QuotaNode:
    root = {each: rng.randint(4, 40) for each in RESOURCES[: rng.randint(1, 2)]}
    attributes = {"fairlead.io/reclaim-scope": "subtree"} if rng.random() < 0.3 else {}
    children = _children(rng, "n", root, root, rng.randint(1, 3))
    return QuotaNode("n", "n", "", root, dict(root), (), attributes, children)


def _children(
    rng: random.Random, parent: str, least: dict[str, int], most: dict[str, int], levels: int
) -> tuple[QuotaNode, ...]:
    """Children whose mins sum to at most the parent's min, and whose max is at most the nearest max
    above.
    """
    count = rng.randint(1, 3)
    left = dict(least)
    found = []
    for number in range(count):
        name = f"{parent}.{number}"
        mine = {each: rng.randint(0, left[each]) for each in least}
        for each in least:
            left[each] -= mine[each]
        ceiling = {
            each: rng.randint(max(1, mine[each]), most[each])
            if most[each] >= max(1, mine[each])
            else most[each]
            for each in most
        }
        own = ceiling if rng.random() < 0.6 else {}
        below = (
            _children(rng, name, mine, own or most, levels - 1)
            if levels > 1 and rng.random() < 0.6
            else ()
        )
        spaces = () if below else (name,)
        lend = {"gpu": rng.randint(0, mine["gpu"])} if rng.random() < 0.15 else {}
        attributes = {"preempt-policy": "Never"} if not below and rng.random() < 0.1 else {}
        if not below and rng.random() < 0.2:
            attributes["fairlead.io/user-order"] = "fair"
        cap = {"gpu": rng.randint(1, 8)} if not below and rng.random() < 0.2 else {}
        found.append(QuotaNode(name, name, parent, mine, own, spaces, attributes, below, lend, cap))
    return tuple(found)


class Order(NamedTuple):
    """Pods that a user creates together. `settles`: whether the world settles afterwards."""

    leaf: str
    count: int
    request: dict[str, int]
    more: dict[str, Any]
    job: str = ""
    kind: str = ""
    settles: bool = False


class Recipe(NamedTuple):
    """A description from which a world can be made again, in whole or in part."""

    seed: int
    tree: QuotaNode
    budgets: dict[str, int]
    grace: int
    orders: list[Order]
    nodes: tuple[NodeRoom, ...] | None = None

    def world(self, **more: Any) -> SmallWorld:
        world = SmallWorld(
            self.tree,
            grace=self.grace,
            seed=self.seed,
            budgets=self.budgets,
            nodes=self.nodes,
            **more,
        )
        for order in self.orders:
            create(world, order)
            if order.settles:
                world.settle()
        return world


def random_recipe(seed: int, *, is_empty: bool = False) -> Recipe:
    rng = random.Random(seed)
    tree = random_tree(rng)
    leaves = [leaf.name for leaf in tree.leaves()]
    budgets = (
        {}
        if is_empty or rng.random() < 0.6
        else {f"{leaf}/web": rng.randint(0, 3) for leaf in leaves}
    )
    grace = rng.randint(1, 4)
    orders = [random_order(rng, tree, leaves, budgets) for _ in range(rng.randint(1, 8))]
    recipe = Recipe(
        seed,
        tree,
        budgets,
        grace,
        [order._replace(settles=not is_empty and rng.random() < 0.5) for order in orders],
    )
    chance = random.Random(f"nodes {seed}")
    return on_nodes(recipe, chance) if chance.random() < 0.33 else recipe


def on_nodes(recipe: Recipe, rng: random.Random) -> Recipe:
    """Adds cluster nodes: some carry pods that quota does not count, some are cordoned. Pods may
    request resources that the tree does not manage.
    """
    count, part = rng.randint(1, 4), rng.uniform(0.3, 1.5)
    other = {"memory": rng.randint(1, 12)} if rng.random() < 0.3 else {}
    nodes = []
    for number in range(count):
        has = {
            each: max(1, round(amount * part / count * rng.uniform(0.6, 1.4)))
            for each, amount in recipe.tree.max.items()
        }
        strange = (
            {each: rng.randint(0, amount // 3) for each, amount in has.items()}
            if rng.random() < 0.2
            else {}
        )
        nodes.append(
            NodeRoom(f"n{number}", has | other, strange, is_schedulable=rng.random() < 0.95)
        )
    orders = [
        order._replace(request=order.request | {each: rng.randint(0, 6) for each in other})
        for order in recipe.orders
    ]
    return recipe._replace(nodes=tuple(nodes), orders=orders)


def with_strict_leaves(recipe: Recipe) -> Recipe:
    """The same world, with `fairlead.io/queue: strict` on two of three leaves."""
    rng = random.Random(f"strict {recipe.seed}")

    def turned(node: QuotaNode) -> QuotaNode:
        if node.children:
            return replace(node, children=tuple(turned(child) for child in node.children))
        return (
            replace(node, attributes={**node.attributes, "fairlead.io/queue": "strict"})
            if rng.random() < 0.67
            else node
        )

    return recipe._replace(tree=turned(recipe.tree))


def random_world(seed: int, *, is_empty: bool = False, **more: Any) -> SmallWorld:
    return random_recipe(seed, is_empty=is_empty).world(**more)


def random_order(
    rng: random.Random, tree: QuotaNode, leaves: list[str], budgets: Mapping[str, int]
) -> Order:
    leaf = rng.choice(leaves)
    request = {each: rng.randint(0, 5) for each in tree.min}
    more: dict[str, Any] = {
        "priority": rng.choice((0, 0, 0, 10, 100)),
        "user": rng.choice(("", "", "ann", "bob")),
    }
    count = rng.randint(1, 5)
    kind = rng.random()
    if kind < 0.2:
        more |= {
            "gang": f"g{rng.randint(0, 99)}",
            "gang_size": rng.randint(1, count + (rng.random() < 0.1)),
        }
    elif kind < 0.3:
        more["is_preemptible"] = False
    elif kind < 0.45 and budgets:
        more["budgets"] = (f"{leaf}/web",)
    elif kind < 0.6:
        return Order(
            leaf, count, request, more, f"job{rng.randint(0, 9999)}", rng.choice(("Job", "MPIJob"))
        )
    return Order(leaf, count, request, more)


def create(world: SmallWorld, order: Order) -> None:
    if order.job:
        world.add_job(
            order.leaf, order.job, order.count, order.request, kind=order.kind, **order.more
        )
    else:
        world.add(order.leaf, order.count, order.request, **order.more)
