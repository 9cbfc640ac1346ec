"""A quota account that is updated pod by pod gives the same plan as an account that is filled at
once, after any events.
"""

from __future__ import annotations

import random

import msgspec
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.examples import examples
from tests.rules.quota.random_worlds import create, random_order, random_recipe, with_strict_leaves
from tests.rules.quota.small import SmallWorld, tree

from fairlead.model.quota.plan import QuotaPlan, Reason
from fairlead.model.quota.rows import Workload
from fairlead.model.quota.state import NodeRoom, QuotaPod, QuotaState
from fairlead.rules.quota.account import QuotaAccount
from fairlead.rules.quota.plan import plan_account, plan_quota


class Follower:
    """An account that receives only the differences between two states, in random order."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.account: QuotaAccount | None = None
        self.pods: dict[str, QuotaPod] = {}
        self.workloads: dict[str, Workload] = {}
        self.reasons: dict[str, Reason] = {}

    def plan(self, state: QuotaState) -> QuotaPlan:
        if self.account is None:
            self.account = QuotaAccount(state.tree, state.settings, state.capacity)
        elif self.account.tree is not state.tree:
            self.account.set_tree(state.tree, state.capacity)
        account = self.account
        account.set_nodes(state.nodes)
        account.budgets = state.budgets
        account.violations = state.violations
        pods = {pod.uid: pod for pod in state.pods}
        changes = [
            uid for uid in sorted({*pods, *self.pods}) if pods.get(uid) != self.pods.get(uid)
        ]
        self.rng.shuffle(changes)
        for uid in changes:
            if uid in pods:
                account.put(pods[uid])
            else:
                account.drop(uid)
        for uid in sorted({*state.workloads, *self.workloads}):
            if uid not in state.workloads:
                account.drop_workload(uid)
            elif state.workloads[uid] != self.workloads.get(uid):
                account.put_workload(state.workloads[uid])
        self.pods, self.workloads = pods, dict(state.workloads)
        planned = plan_account(account, state.now)
        plan = planned.plan()
        waiting = {row.unit: row.reason for row in plan.waiting}
        self.reasons = {
            key: reason
            for key, reason in (self.reasons | planned.reasons()).items()
            if key in waiting
        }
        assert self.reasons == waiting, "a reason changed unnoticed"
        return plan


@examples(15, 250, st.integers(0, 10**9), st.booleans())
def test_added_pod_by_pod_or_filled_at_once(seed: int, is_strict: bool) -> None:
    follower = Follower(seed)

    def plan(state: QuotaState) -> QuotaPlan:
        full, reported = plan_quota(state), follower.plan(state)
        assert _bytes(reported) == _bytes(replace(full, nodes=())), f"seed {seed}"
        return full

    recipe = random_recipe(seed)
    world = (with_strict_leaves(recipe) if is_strict else recipe).world(plan=plan)
    _events(world, random.Random(seed + 1))


def _events(world: SmallWorld, rng: random.Random) -> None:
    leaves = [leaf.name for leaf in world.tree.leaves()]
    for _ in range(rng.randint(5, 25)):
        what = rng.random()
        if what < 0.3:
            create(world, random_order(rng, world.tree, leaves, world.budgets))
        elif what < 0.5 and world.pods:
            gone = set(rng.sample(sorted(world.pods), rng.randint(1, min(3, len(world.pods)))))
            world.remove(lambda pod, gone=gone: pod.key not in gone)  # type: ignore[misc]
        elif what < 0.55:
            world.budgets = {key: rng.randint(0, 3) for key in world.budgets}
        elif what < 0.6:
            world.now += rng.choice((30, 70, 400))
        elif what < 0.75 and world.nodes:
            world.nodes = _changed(rng, world.nodes)
        world.step()


def _changed(rng: random.Random, nodes: tuple[NodeRoom, ...]) -> tuple[NodeRoom, ...]:
    """One node is cordoned or uncordoned, offers other amounts, or has other pods on it; or a node
    goes or comes.
    """
    node, rest = nodes[0], nodes[1:]
    what = rng.random()
    if what < 0.3:
        node = replace(node, is_schedulable=not node.is_schedulable)
    elif what < 0.6:
        node = replace(
            node,
            allocatable={
                each: rng.choice((0, amount, amount + 3))
                for each, amount in node.allocatable.items()
            },
        )
    elif what < 0.8:
        node = replace(
            node, taken={each: rng.randint(0, amount) for each, amount in node.allocatable.items()}
        )
    elif what < 0.9:
        return (*rest, node, replace(node, name=f"m{rng.randint(0, 99)}"))
    else:
        return rest
    return (*rest, node)


def test_what_did_not_change_is_not_looked_at() -> None:
    """A pod that goes causes a new look at the units that wait for its room, and at no others."""
    follower = Follower(1)
    world = SmallWorld(tree("root[20]{a[10/10] b[10/10]}"), plan=follower.plan)
    world.add("a", 12, 1)
    world.add("b", 12, 1)
    world.settle()
    assert follower.account is not None
    world.remove(lambda pod: pod.key != "a/p001")
    follower.plan(world.state())
    looked = plan_account(follower.account, world.now).reasons()
    assert looked and {key.partition("/")[0] for key in looked} == {"a"}


def test_a_sentence_with_the_capacity_follows_it_where_the_min_counts_as_before() -> None:
    """A min of 3 of 14 GPUs counts as 1 both with 9 and with 8 GPUs."""
    follower = Follower(1)
    nodes = tuple(NodeRoom(name, {"gpu": gpus}) for name, gpus in (("n1", 5), ("n2", 4)))
    world = SmallWorld(tree("root[14]{a[3] b[11]}"), nodes=nodes, plan=follower.plan)
    world.add("b", 3, 1, runs=True)
    world.add("a", 1, 2, is_preemptible=False)
    world.settle()
    for there in (9, 8):
        world.nodes = (nodes[0], replace(nodes[1], allocatable={"gpu": there - 5}))
        (row,) = (row for row in world.step().waiting if row.leaf == "a")
        assert f"configured 14, available {there}, so 3 counts as 1" in row.message


def _bytes(plan: QuotaPlan) -> bytes:
    return msgspec.json.encode(plan, order="deterministic")
