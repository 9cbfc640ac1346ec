"""Quota is free and no cluster node has room: the fewest leave one for who is guaranteed, or nobody does (quota contract 2.12)."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from tests.rules.quota.small import SmallWorld, tree

from fairlead.model.node_choice import NodeChoice
from fairlead.model.quota.plan import QuotaPlan
from fairlead.model.quota.state import NodeRoom, QuotaPod, QuotaState
from fairlead.rules.quota.plan import plan_quota

ROOT = "root[24]{a[8] b[8] c[0]}"


def waiting(name: str, leaf: str = "a", gpus: int = 1, more: dict[str, int] | None = None, **fields: Any) -> QuotaPod:
    return QuotaPod(leaf, name, f"uid-{name}", {"gpu": gpus, **(more or {})}, owner=f"owner-{name}", **fields)


def running(name: str, node: str, leaf: str = "c", gpus: int = 1, more: dict[str, int] | None = None, **fields: Any) -> QuotaPod:
    return replace(waiting(name, leaf, gpus, more, **fields), is_admitted=True, is_ready=True, admitted_at=1.0, node=node)


def room(name: str, gpus: int = 8, **more: Any) -> NodeRoom:
    return NodeRoom(name, {"gpu": gpus, **more.pop("offers", {})}, **more)


def planned(pods: list[QuotaPod], nodes: list[NodeRoom], root: str = ROOT, **more: Any) -> QuotaPlan:
    return plan_quota(QuotaState(tree(root), tuple(pods), nodes=tuple(nodes), **more))


def victims(plan: QuotaPlan) -> list[str]:
    return sorted(each.pod.name for each in plan.evict)


NODES = [room("n1"), room("n2"), room("n3")]
SMALL = [room(f"s{number}", 1, offers={"memory": 10}) for number in range(8)]
"""More quota, where nobody of any size fits."""


def test_the_node_where_the_fewest_go_is_taken() -> None:
    """Each node has two free; on n2 one pod of 4 gives what elsewhere several do."""
    pods = [running(f"{node}-{n}", node, gpus=2) for node in ("n1", "n3") for n in range(3)]
    pods += [running("n2-big", "n2", gpus=4), running("n2-small", "n2", gpus=2)]
    plan = planned([*pods, waiting("a1", gpus=6)], NODES)
    assert (plan.admit, victims(plan)) == ((), ["n2-big"])
    assert [(each.unit, str(row.reason)) for each, row in zip(plan.claims, plan.waiting, strict=True)] == [("a/a1", "WaitingForEvictions")]
    assert (
        plan.evict[0].told == "a/a1 is guaranteed by a and needs room on n2; c uses 18 of guaranteed 0 gpu, and the fewest have to go there"
    )


def test_who_borrows_has_nobody_leave() -> None:
    pods = [running(f"{node}-{n}", node, gpus=2) for node in ("n1", "n2", "n3") for n in range(3)]
    plan = planned([*pods, waiting("c1", "c", gpus=3)], NODES)
    assert ([str(row.reason) for row in plan.waiting], plan.evict) == (["NoFitOnNodes"], ())
    plan = planned([*pods, waiting("c1", "c", gpus=3), waiting("b1", "b", gpus=3)], NODES)
    assert [(each.for_unit, each.pod.node) for each in plan.evict] == [("b/b1", "n1")]


@pytest.mark.parametrize(
    "there",
    [
        [running("b1", "n1", "b", gpus=6)],
        [running("c1", "n1", gpus=6, budgets=("c/web",))],
        [running("c1", "n1", gpus=6, is_preemptible=False)],
        [running("a1", "n1", "a", gpus=6)],
        [running("c1", "n1", gpus=6, refused_at=90.0)],
        [running("c1", "n1", gpus=0, more={"memory": 9})],
    ],
    ids=["within its min", "a PodDisruptionBudget", "not preemptible", "its own leaf", "refused a moment ago", "not counted by quota"],
)
def test_who_may_not_be_evicted_stays(there: list[QuotaPod]) -> None:
    nodes = [room("n1", offers={"memory": 10}), *SMALL]
    asks = waiting("u", gpus=3 if there[0].namespace == "a" else 4, more={"memory": 2})
    plan = planned([*there, asks], nodes, "root[40]{a[9] b[7] c[0]}", now=100.0)
    assert (plan.admit, plan.evict, [str(row.reason) for row in plan.waiting]) == ((), (), ["NoFitOnNodes"])


def test_nobody_leaves_when_it_does_not_help() -> None:
    """Who borrows on n1 gives 4; the rest is b's own."""
    pods = [running("b1", "n1", "b", gpus=4), running("c1", "n1", gpus=4)]
    assert victims(planned([*pods, waiting("u", gpus=4)], [room("n1"), room("n2", 0)], "root[12]{a[8] b[4] c[0]}")) == ["c1"]
    plan = planned([*pods, waiting("u", gpus=5)], [room("n1"), room("n2", 4)], "root[24]{a[8] b[8] c[0]}")
    assert (plan.admit, plan.evict) == ((), ())


def test_what_the_tree_does_not_manage_counts_too() -> None:
    """There are GPUs enough; memory is lacking, which no leaf has a min of: who is above min in what is counted gives it."""
    pods = [running("b1", "n1", "b", gpus=1, more={"memory": 5}), running("c1", "n1", gpus=1, more={"memory": 5})]
    plan = planned([*pods, waiting("u", gpus=1, more={"memory": 4})], [room("n1", offers={"memory": 10})])
    assert victims(plan) == ["c1"]


def test_a_gang_may_need_victims_on_several_nodes() -> None:
    pods = [running(f"{node}-{n}", node, gpus=4) for node in ("n1", "n2", "n3") for n in range(2)]
    gang = [waiting(f"g{n}", gpus=4, gang="g", gang_size=2) for n in range(2)]
    one_each = [replace(each, request={"gpu": 5}) for each in gang]
    assert len(planned([*pods, *gang], NODES).evict) == 2
    plan = planned([*pods, *one_each], NODES, "root[24]{a[10] b[8] c[0]}")
    assert (len(plan.evict), len({each.pod.node for each in plan.evict})) == (4, 2)


def test_a_gang_that_borrows_goes_as_a_whole() -> None:
    gang = [running(f"g{n}", f"n{1 + n}", gpus=6, gang="g", gang_size=2) for n in range(2)]
    plan = planned([*gang, running("b1", "n3", "b", gpus=6), waiting("u", gpus=4)], NODES)
    assert victims(plan) == ["g0", "g1"]


def test_a_claimant_keeps_the_room_that_is_being_made() -> None:
    """While c's pod stops, nobody else gets its place; when it is gone the claimant is admitted, and nobody else has had to go."""
    world = SmallWorld(tree(ROOT), nodes=(room("n1"), room("n2")), grace=5)
    world.add("c", 4, 3, owner="c")
    world.settle()
    world.add("a", 1, 4, owner="a")
    world.step()
    assert (world.evictions, world.reasons("a")) == (1, {"WaitingForEvictions": 1})
    world.add("c", 1, 2, owner="c")
    world.add("b", 1, 3, owner="b")
    world.settle()
    assert world.running("a", "b") == (1, 1)
    assert (world.evictions, world.unbound) == (2, [])


def test_where_a_node_must_be_of_a_kind_only_such_are_cleared() -> None:
    nodes = [room("n1"), room("n2", labels={"pool": "x"})]
    pods = [running("c1", "n1", gpus=8), *(running(f"c{n}", "n2", gpus=4) for n in (2, 3))]
    choice = NodeChoice(selector=(("pool", "x"),))
    assert victims(planned([*pods, waiting("u", gpus=8, choice=choice)], nodes)) == ["c2", "c3"]


def test_a_choice_for_quota_that_fits_nowhere_is_made_on_one_node() -> None:
    """The newest of c would go first, one on each node; a needs both places on one."""
    pods = [running(f"{node}-{n}", node, gpus=4, created_at=float(n)) for node in ("n1", "n2") for n in range(2)]
    plan = planned([*pods, waiting("u", gpus=8)], [room("n1"), room("n2")])
    assert victims(plan) in (["n1-0", "n1-1"], ["n2-0", "n2-1"])


def test_two_jobs_do_not_take_turns_on_a_node() -> None:
    """Both are guaranteed in quota; the node has room for one."""
    world = SmallWorld(tree("root[16]{a[8] b[8]}"), nodes=(room("n1", 8), *SMALL))
    world.add("a", 1, 6, owner="a")
    world.settle()
    world.add("b", 1, 5, owner="b")
    world.settle()
    assert (world.running("a", "b"), world.evictions) == ((1, 0), 0)


def test_a_gang_whose_pods_would_fit_one_by_one_is_told_how_many_would() -> None:
    gang = [waiting(f"g{number}", "c", gpus=3, gang="train", gang_size=3) for number in range(3)]
    plan = planned([running("x", "n1", gpus=4), *gang], [room("n1"), room("n2", 3), room("n3", 2)])
    assert [(str(row.reason), row.message) for row in plan.waiting] == [
        ("NoFitOnNodes", "gpu asks 3 for each of 3 pods that start together; the cluster's nodes have room for 2 of them")
    ]
