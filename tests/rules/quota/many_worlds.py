"""Checks the properties of docs/spec/quota.md#properties-of-every-plan over random worlds, one
function per property.

    python -m tests.rules.quota.many_worlds [--count 100000] [--seed 0]

plays `--count` worlds and prints the first world that violates a property, reduced as far as
possible, and the total time. Properties (1) and (8), no node above its max and no unit both
admitted and evicted, are checked by `SmallWorld` itself at every plan.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import defaultdict

import msgspec
from tests.rules.quota.random_worlds import Recipe, random_recipe
from tests.rules.quota.small import SmallWorld

from fairlead.model.quota.clauses import clause, sentence_of
from fairlead.model.quota.plan import QuotaPlan, QuotaWaiting
from fairlead.model.quota.state import QuotaPod
from fairlead.model.quota.tree import QuotaNode
from fairlead.rules.quota.plan import plan_quota

PLANS_MAX = 80
_OTHER_REASONS = ("NeverFits", "GangIncomplete", "UserCap", "NonPreemptibleOverMin", "QueuedBehind")


def check_world(recipe: Recipe) -> None:
    """Raises AssertionError with the property that the world violates."""
    world = recipe.world()
    world.settle(PLANS_MAX)
    leaf = next(iter(world.tree.leaves())).name
    world.add(leaf, 3, dict.fromkeys(world.tree.min, 1), priority=50)
    caused: defaultdict[str, int] = defaultdict(int)
    for _ in range(PLANS_MAX):
        first, again = plan_quota(world.state()), plan_quota(world.state())
        assert _bytes(first) == _bytes(again), "(2) the order of the lists matters"
        claims = (
            {each.unit for each in first.claims} if not world.is_busy and not first.evict else set()
        )
        assert not claims, f"(5) no pod stops any more, and {sorted(claims)} are not admitted"
        check_victims(world, first)
        check_sentences(first)
        plan = world.step()
        # one second later than `first`, and carried out
        for unit in {each.for_unit for each in plan.evict}:
            caused[unit] += 1
            assert caused[unit] == 1, f"(4) {unit} causes evictions again"
        assert not world.unbound, f"(10) {world.unbound} are admitted, and no node has room"
        if plan.is_empty and not world.is_busy:
            check_guaranteed(world, plan)
            return
    raise AssertionError("(3) no end")


def check_sentences(plan: QuotaPlan) -> None:
    """Every reason has clauses, so that pages can translate it: the sentence is composed of the
    clauses, and each clause's code and values reproduce its words.
    """
    for row in plan.waiting:
        assert row.clauses, f"no clauses of `{row.message}`"
        assert sentence_of(row.clauses) == row.message
        assert all(clause(each.code, **each.values) == each for each in row.clauses), row.message


def check_victims(world: SmallWorld, plan: QuotaPlan) -> None:
    """(6) no victim could be spared; (7) the unit fits once all victims are gone. Only for plans
    that evict for one unit.
    """
    units = {each.for_unit for each in plan.evict}
    waiting = {row.unit: row for row in plan.waiting}
    row = waiting.get(next(iter(units))) if len(units) == 1 else None
    if row is None or len(plan.claims) != 1 or any(node.lend_limit for node in world.tree.walk()):
        return
    gone = {each.pod.key for each in plan.evict}
    new = {each.pod.key for each in plan.admit}
    stays = [
        pod
        for pod in world.pods.values()
        if (pod.is_admitted and not pod.is_stopping and pod.key not in gone) or pod.key in new
    ]
    assert fits(world.tree, stays, row), f"(7) {row.unit} does not fit when its victims have gone"
    bound = [pod for pod in stays if pod.key not in new]
    assert fits_on_nodes(world, bound, row), (
        f"(7) no node has room for {row.unit} when its victims have gone"
    )
    together: defaultdict[tuple[str, str], list[QuotaPod]] = defaultdict(list)
    for each in plan.evict:
        pod = each.pod
        together[pod.namespace, pod.owner if each.workload else pod.gang or pod.key].append(pod)
    for (_, name), pods in together.items():
        if not new or world.nodes is None:
            is_needed = not fits(world.tree, [*stays, *pods], row) or not fits_on_nodes(
                world, [*stays, *pods], row
            )
            assert is_needed, f"(6) {name} could be spared"


def fits(tree: QuotaNode, pods: list[QuotaPod], row: QuotaWaiting) -> bool:
    """Plain sums: whether no node on the unit's path exceeds its max with it, in a resource that it
    requests.
    """
    for node in tree.walk():
        spaces = {space for leaf in node.leaves() for space in leaf.namespaces}
        if row.pods[0].namespace in spaces:
            for resource, most in node.max.items():
                asked = sum(pod.request.get(resource, 0) for pod in row.pods)
                used = sum(pod.request.get(resource, 0) for pod in pods if pod.namespace in spaces)
                if asked and used + asked > most:
                    return False
    return True


def fits_on_nodes(world: SmallWorld, pods: list[QuotaPod], row: QuotaWaiting) -> bool:
    """Whether the unit's pods find room on nodes beside these pods, first fit."""
    if world.nodes is None:
        return True
    free = {
        node.name: {
            name: amount
            - node.taken.get(name, 0)
            - sum(pod.request.get(name, 0) for pod in pods if pod.node == node.name)
            for name, amount in node.allocatable.items()
        }
        for node in sorted(world.nodes, key=lambda each: each.name)
        if node.is_schedulable
    }
    for pod in row.pods:
        asked = {name: amount for name, amount in pod.request.items() if amount}
        there = next(
            (
                room
                for room in free.values()
                if all(amount <= room[name] for name, amount in asked.items())
            ),
            None,
        )
        if there is None:
            return False
        for name, amount in asked.items():
            there[name] -= amount
    return True


def check_guaranteed(world: SmallWorld, plan: QuotaPlan) -> None:
    """(9) in the end no unit waits that its leaf's min covers, unless a PodDisruptionBudget
    prevents it.

    With cluster nodes, only units count for which there would be room if all pods without any min
    were gone.
    """
    if world.budgets:
        return
    leaves = {leaf.name: leaf for leaf in world.tree.leaves()}
    for row in plan.waiting:
        if str(row.reason) in _OTHER_REASONS or row.message.startswith("gang "):
            continue
        leaf = leaves[row.leaf]
        job = row.workload
        asked = [pod.request for pod in row.pods] or (
            [job.each if job.gives_singly else job.request] if job else []
        )
        own = [
            pod.request
            for pod in world.pods.values()
            if pod.namespace in leaf.namespaces and pod.is_admitted
        ]
        covered = all(
            sum(each.get(name, 0) for each in (*own, *asked)) <= counted_min(world, leaf, name)
            for name in world.tree.min
        )
        if covered and world.nodes is not None:
            is_promised = any(
                amount and name in world.tree.max
                for pod in row.pods
                for name, amount in pod.request.items()
            )
            covered = is_promised and could_have_room(world, row)
        assert not covered, f"(9) {row.unit} is guaranteed and waits: {row.message}"


def counted_min(world: SmallWorld, leaf: QuotaNode, resource: str) -> int:
    """The least that a leaf's min counts as: proportionally less where the nodes have less than all
    mins promise.
    """
    least, nodes = (
        leaf.min.get(resource, 0),
        [node for node in world.nodes or () if node.is_schedulable],
    )
    if not any(node.allocatable.get(resource, 0) for node in nodes):
        return least
    there = sum(
        max(0, node.allocatable.get(resource, 0) - node.taken.get(resource, 0)) for node in nodes
    )
    promised = sum(each.min.get(resource, 0) for each in world.tree.leaves())
    return least if there >= promised else least * there // promised


def could_have_room(world: SmallWorld, row: QuotaWaiting) -> bool:
    """Whether the unit's pods would find room if all preemptible pods that have no min and belong
    to no gang were gone.
    """
    borrowers = without_min(world.tree) - {row.pods[0].namespace}
    stays = [
        pod
        for pod in world.pods.values()
        if pod.is_admitted
        and not (
            pod.namespace in borrowers
            and pod.is_preemptible
            and not pod.gang
            and any(amount and name in world.tree.max for name, amount in pod.request.items())
        )
    ]
    return fits_on_nodes(world, stays, row) and fits(world.tree, stays, row)


def without_min(node: QuotaNode) -> set[str]:
    """Namespaces that no min below the root covers."""
    if node.parent and any(node.min.values()):
        return set()
    return {*node.namespaces, *(space for child in node.children for space in without_min(child))}


def check_arrival(recipe: Recipe) -> None:
    """(8) pods that arrive together in an empty tree settle without evictions."""
    world = recipe.world()
    world.settle(PLANS_MAX)
    assert not world.evictions, f"(8) {world.evictions} evictions for what arrived at once"


def broken(recipe: Recipe) -> str:
    """The property that the world violates; "" = none."""
    try:
        check_world(recipe)
    except AssertionError as error:
        return str(error) or "no end"
    return ""


def smallest(recipe: Recipe) -> Recipe:
    """The recipe without everything that is not needed to violate a property."""
    for number in reversed(range(len(recipe.orders))):
        less = recipe._replace(orders=[*recipe.orders[:number], *recipe.orders[number + 1 :]])
        if less.orders and broken(less):
            recipe = less
    for number, order in enumerate(recipe.orders):
        while order.count > 1:
            order = order._replace(count=order.count - 1)
            less = recipe._replace(
                orders=[*recipe.orders[:number], order, *recipe.orders[number + 1 :]]
            )
            if not broken(less):
                break
            recipe = less
    return recipe


def reported(recipe: Recipe) -> str:
    small = smallest(recipe)
    orders = "\n".join(f"  {order}" for order in small.orders)
    return (
        f"seed {recipe.seed}: {broken(small)}\ntree {small.tree}\nbudgets {small.budgets}, grace "
        f"{small.grace}\n{orders}"
    )


def _bytes(plan: QuotaPlan) -> bytes:
    """Lists keep their order; the keys of mappings are sorted."""
    return msgspec.json.encode(plan, order="deterministic")


def main(count: int, first: int) -> int:
    begun, evicting = time.monotonic(), 0
    for seed in range(first, first + count):
        recipe = random_recipe(seed)
        if broken(recipe):
            print(reported(recipe))
            return 1
        try:
            check_arrival(random_recipe(seed, is_empty=True))
        except AssertionError:
            evicting += 1
    print(
        f"{count} worlds from seed {first}: no property broken, in {time.monotonic() - begun:.0f} s"
    )
    print(f"{evicting} of {count} that arrive at once settle with evictions")
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    sys.exit(main(arguments.count, arguments.seed))
