"""Quota is free but no cluster node has room: as few pods as possible are evicted for a guaranteed
unit, or none.

See docs/spec/quota.md#cluster-nodes.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import pytest
from msgspec.structs import replace
from tests.rules.quota.small import SmallWorld, tree

from fairlead.model.node_choice import NodeChoice
from fairlead.model.quota.plan import QuotaPlan
from fairlead.model.quota.state import NodeRoom, QuotaPod, QuotaState
from fairlead.model.quota.tree import QuotaNode
from fairlead.rules.quota.plan import plan_quota

ROOT = "root[24]{a[8] b[8] c[0]}"


def waiting(
    name: str, leaf: str = "a", gpus: int = 1, more: dict[str, int] | None = None, **fields: Any
) -> QuotaPod:
    return QuotaPod(
        leaf, name, f"uid-{name}", {"gpu": gpus, **(more or {})}, owner=f"owner-{name}", **fields
    )


def running(
    name: str,
    node: str,
    leaf: str = "c",
    gpus: int = 1,
    more: dict[str, int] | None = None,
    **fields: Any,
) -> QuotaPod:
    return replace(
        waiting(name, leaf, gpus, more, **fields),
        is_admitted=True,
        is_ready=True,
        admitted_at=1.0,
        node=node,
    )


def room(name: str, gpus: int = 8, **more: Any) -> NodeRoom:
    return NodeRoom(name, {"gpu": gpus, **more.pop("offers", {})}, **more)


def planned(
    pods: list[QuotaPod], nodes: list[NodeRoom], root: str = ROOT, **more: Any
) -> QuotaPlan:
    return plan_quota(QuotaState(tree(root), tuple(pods), nodes=tuple(nodes), **more))


def victims(plan: QuotaPlan) -> list[str]:
    return sorted(each.pod.name for each in plan.evict)


NODES = [room("n1"), room("n2"), room("n3")]
SMALL = [room(f"s{number}", 1, offers={"memory": 10}) for number in range(8)]
"""Nodes that add capacity to the quota, but on which no larger pod fits."""


def test_the_node_where_the_fewest_go_is_taken() -> None:
    """Each node has two GPUs free; on n2 one pod of 4 frees what takes several pods elsewhere."""
    pods = [running(f"{node}-{n}", node, gpus=2) for node in ("n1", "n3") for n in range(3)]
    pods += [running("n2-big", "n2", gpus=4), running("n2-small", "n2", gpus=2)]
    plan = planned([*pods, waiting("a1", gpus=6)], NODES)
    assert (plan.admit, victims(plan)) == ((), ["n2-big"])
    assert [
        (each.unit, str(row.reason)) for each, row in zip(plan.claims, plan.waiting, strict=True)
    ] == [("a/a1", "WaitingForEvictions")]
    assert plan.evict[0].message == (
        "a/a1 is guaranteed by a and needs room on n2; c uses 18 of guaranteed 0 gpu, and the "
        "fewest have to go there"
    )


def test_a_borrower_makes_no_pod_leave() -> None:
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
    ids=[
        "within its min",
        "a PodDisruptionBudget",
        "not preemptible",
        "its own leaf",
        "refused a moment ago",
        "not counted by quota",
    ],
)
def test_a_pod_that_may_not_be_evicted_stays(there: list[QuotaPod]) -> None:
    nodes = [room("n1", offers={"memory": 10}), *SMALL]
    asks = waiting("u", gpus=3 if there[0].namespace == "a" else 4, more={"memory": 2})
    plan = planned([*there, asks], nodes, "root[40]{a[9] b[7] c[0]}", now=100.0)
    assert (plan.admit, plan.evict, [str(row.reason) for row in plan.waiting]) == (
        (),
        (),
        ["NoFitOnNodes"],
    )


def test_no_pod_leaves_when_it_does_not_help() -> None:
    """The borrower on n1 has 4; the rest is `b`'s guarantee."""
    pods = [running("b1", "n1", "b", gpus=4), running("c1", "n1", gpus=4)]
    assert victims(
        planned(
            [*pods, waiting("u", gpus=4)], [room("n1"), room("n2", 0)], "root[12]{a[8] b[4] c[0]}"
        )
    ) == ["c1"]
    plan = planned(
        [*pods, waiting("u", gpus=5)], [room("n1"), room("n2", 4)], "root[24]{a[8] b[8] c[0]}"
    )
    assert (plan.admit, plan.evict) == ((), ())


def test_what_the_tree_does_not_manage_counts_too() -> None:
    """There are enough GPUs; memory is lacking, for which no leaf has a min. The pod of a leaf
    above its min in a managed resource is evicted.
    """
    pods = [
        running("b1", "n1", "b", gpus=1, more={"memory": 5}),
        running("c1", "n1", gpus=1, more={"memory": 5}),
    ]
    plan = planned(
        [*pods, waiting("u", gpus=1, more={"memory": 4})], [room("n1", offers={"memory": 10})]
    )
    assert victims(plan) == ["c1"]


def test_no_pod_leaves_for_one_that_requests_nothing_promised() -> None:
    """The tree manages only GPUs, so memory cannot be guaranteed to `b`."""
    pods = [
        running("c1", "n1", gpus=1, more={"memory": 8}),
        waiting("u", "b", gpus=0, more={"memory": 4}),
    ]
    plan = planned(pods, [room("n1", offers={"memory": 10})])
    assert (plan.admit, plan.evict) == ((), ())


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
    """While the pod of `c` stops, its room stays reserved. Afterwards the claimant is admitted, and
    no further pod is evicted for it.
    """
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
    """By quota alone the newest pods of `c` would go, one on each node; `a` needs both places on
    one node.
    """
    pods = [
        running(f"{node}-{n}", node, gpus=4, created_at=float(n))
        for node in ("n1", "n2")
        for n in range(2)
    ]
    plan = planned([*pods, waiting("u", gpus=8)], [room("n1"), room("n2")])
    assert victims(plan) in (["n1-0", "n1-1"], ["n2-0", "n2-1"])


def test_two_jobs_do_not_take_turns_on_a_node() -> None:
    """Both jobs are guaranteed by quota; the node has room for one."""
    world = SmallWorld(tree("root[16]{a[8] b[8]}"), nodes=(room("n1", 8), *SMALL))
    world.add("a", 1, 6, owner="a")
    world.settle()
    world.add("b", 1, 5, owner="b")
    world.settle()
    assert (world.running("a", "b"), world.evictions) == ((1, 0), 0)


def both(cpu: int, gpus: int) -> dict[str, int]:
    return {"cpu": cpu, "gpu": gpus}


def two_resources(*leaves: tuple[str, dict[str, int]]) -> QuotaNode:
    most = both(20, 20)
    return QuotaNode(
        "root",
        "root",
        "",
        most,
        most,
        (),
        {},
        tuple(QuotaNode(name, name, "root", least, most, (name,)) for name, least in leaves),
    )


def asking(each: QuotaPod, cpu: int, gpus: int, memory: int = 0) -> QuotaPod:
    return replace(each, request=both(cpu, gpus) | ({"memory": memory} if memory else {}))


@pytest.mark.parametrize(
    ("memory", "why"),
    [
        (0, "a node lacks GPUs, of which it has its own"),
        (6, "it is above min in what is not scarce"),
    ],
)
def test_being_above_min_in_something_else_does_no_harm(memory: int, why: str) -> None:
    """x is above its min in cpu, of which there is enough; of the scarce GPUs it has only its
    guarantee.
    """
    root = two_resources(("a", both(4, 8)), ("x", both(0, 6)), ("y", both(0, 6)))
    there = [
        asking(running("x1", "n1", "x"), 4, 6, memory),
        asking(running("y1", "n2", "y"), 0, 12),
    ]
    nodes = [
        NodeRoom("n1", both(20, 8) | {"memory": 8}),
        NodeRoom("n2", both(20, 12)),
        *(NodeRoom(f"s{n}", both(0, 1)) for n in range(8)),
    ]
    asked = asking(waiting("u"), 1, 1 if memory else 4, 4 if memory else 0)
    scarce = asking(waiting("y2", "y"), 0, 12)
    plan = plan_quota(QuotaState(root, (*there, asked, scarce), nodes=tuple(nodes)))
    assert (victims(plan), [each.pod.name for each in plan.admit]) in (([], []), (["y1"], [])), why


def test_what_a_min_guarantees_of_what_is_lacking_is_never_taken() -> None:
    """x borrows scarce cpu; of the GPUs that the node lacks it has only its guarantee."""
    root = two_resources(("a", both(4, 8)), ("x", both(0, 6)), ("y", both(0, 0)))
    pods = [
        asking(running("x1", "n1", "x"), 4, 6),
        asking(waiting("u"), 0, 4),
        asking(waiting("y1", "y"), 17, 0),
    ]
    nodes = [NodeRoom("n1", both(20, 8)), *(NodeRoom(f"s{n}", both(0, 1)) for n in range(8))]
    plan = plan_quota(QuotaState(root, tuple(pods), nodes=tuple(nodes)))
    assert (plan.evict, [str(row.reason) for row in plan.waiting if row.unit == "a/u"]) == (
        (),
        ["NoFitOnNodes"],
    )
    more = two_resources(("a", both(4, 8)), ("x", both(0, 5)), ("y", both(0, 0)))
    assert victims(plan_quota(QuotaState(more, tuple(pods), nodes=tuple(nodes)))) == ["x1"]


def test_of_one_node_the_fewest_go_whichever_goes_first() -> None:
    pods = [
        running("big", "n1", gpus=4, created_at=1.0),
        *(running(f"c{n}", "n1", gpus=2, created_at=9.0) for n in range(2)),
    ]
    assert victims(planned([*pods, waiting("u", gpus=4)], [room("n1"), *SMALL])) == ["big"]


@pytest.mark.parametrize("seed", range(40))
def test_nowhere_would_fewer_do(seed: int) -> None:
    """The oracle tries every set of pods on every node, for GPUs and for memory, which the tree
    does not manage.
    """
    chance = random.Random(seed)
    nodes = [room(f"n{n}", 8, offers={"memory": 20}) for n in range(4)]
    pods: list[QuotaPod] = []
    for node in nodes:
        for number in range(chance.randint(2, 6)):
            asks, memory = chance.randint(1, 3), chance.randint(0, 6)
            if fits_beside([each for each in pods if each.node == node.name], asks, memory):
                leaf = chance.choice("cccb")
                pods.append(
                    running(
                        f"{node.name}-{number}",
                        node.name,
                        leaf,
                        asks,
                        {"memory": memory},
                        priority=chance.randint(0, 2),
                    )
                )
    asked, memory = chance.randint(3, 8), chance.randint(0, 20)
    plan = planned(
        [*pods, waiting("u", gpus=asked, more={"memory": memory})],
        [*nodes, *SMALL],
        "root[100]{a[9] b[31] c[0]}",
    )
    least = 99
    for node in nodes:
        there = [each for each in pods if each.node == node.name]
        may = [each for each in there if each.namespace == "c"]
        for count in range(len(may) + 1):
            if any(
                fits_beside([each for each in there if each not in gone], asked, memory)
                for gone in combinations(may, count)
            ):
                least = min(least, count)
                break
    assert len(plan.evict) == (0 if least == 99 else least), plan.evict
    assert (least == 0) == bool(plan.admit)


def fits_beside(there: Sequence[QuotaPod], gpus: int, memory: int) -> bool:
    return (
        sum(each.request["gpu"] for each in there) + gpus <= 8
        and sum(each.request["memory"] for each in there) + memory <= 20
    )


def test_of_nodes_where_as_many_go_it_is_the_least_important() -> None:
    pods = [
        running(node, node, gpus=6, priority=priority)
        for node, priority in (("n1", 5), ("n2", 0), ("n3", 5))
    ]
    assert victims(planned([*pods, waiting("u", gpus=4)], NODES)) == ["n2"]


def test_no_pod_of_its_own_leaf_leaves() -> None:
    """The leaf is above its min in cpu, of which there is enough."""
    root = two_resources(("a", both(0, 8)), ("b", both(0, 8)))
    pods = [asking(running("a1", "n1", "a"), 5, 4), asking(waiting("u"), 0, 4)]
    nodes = [NodeRoom("n1", both(20, 6)), *(NodeRoom(f"s{n}", both(0, 1)) for n in range(14))]
    scarce = asking(waiting("b2", "b"), 0, 20)
    plan = plan_quota(QuotaState(root, (*pods, scarce), nodes=tuple(nodes)))
    assert (plan.evict, [str(row.reason) for row in plan.waiting if row.unit == "a/u"]) == (
        (),
        ["NoFitOnNodes"],
    )


def test_claimants_of_one_plan_share_a_node() -> None:
    """A small unit is admitted between them. The victims of the first claimant must still count as
    leaving for the second.
    """
    pods = [running(f"c{n}", "n1", gpus=4) for n in range(2)]
    units = [
        waiting("u1", gpus=4, priority=9),
        waiting("small", gpus=1, priority=8),
        waiting("u2", "b", gpus=4, priority=7),
    ]
    plan = planned([*pods, *units], [room("n1"), *SMALL])
    assert ([each.pod.name for each in plan.admit], victims(plan)) == (["small"], ["c0", "c1"])


def test_no_pod_is_admitted_that_a_scheduler_could_put_into_the_room_of_a_claimant() -> None:
    """a needs all of n1, where four GPUs are free and four are stopping. b fits on n2, but the
    scheduler knows of no claims and may choose n1.
    """
    stops = running("c1", "n1", gpus=4, is_stopping=True, stopping_at=90.0)
    pods = [
        stops,
        running("c2", "n2", gpus=6),
        waiting("a1", gpus=8, claim_since=90.0, condition_reason="WaitingForEvictions"),
    ]
    small = waiting("b1", "b", gpus=2)
    plan = planned([*pods, small], [room("n1"), room("n2"), *SMALL], now=100.0)
    assert (plan.admit, plan.evict) == ((), ())
    assert [(row.unit, row.message) for row in plan.waiting if row.unit == "b/b1"] == [
        (
            "b/b1",
            (
                "b/b1 could take room on n1 that is kept for a/a1, until the pods that make "
                "it have "
                "stopped"
            ),
        )
    ]
    both_fit = planned(
        [*pods, replace(small, request={"gpu": 1})], [room("n1", 9), room("n2"), *SMALL], now=100.0
    )
    assert [each.pod.name for each in both_fit.admit] == ["b1"], "n1 has room for both"
    gone = [pods[1], replace(pods[2], is_admitted=True, node="n1", admitted_at=99.0), small]
    assert [
        each.pod.name for each in planned(gone, [room("n1"), room("n2"), *SMALL], now=100.0).admit
    ] == ["b1"]


def test_a_gang_whose_pods_would_fit_one_by_one_gets_the_number_that_would() -> None:
    gang = [waiting(f"g{number}", "c", gpus=3, gang="train", gang_size=3) for number in range(3)]
    plan = planned([running("x", "n1", gpus=4), *gang], [room("n1"), room("n2", 3), room("n3", 2)])
    assert [(str(row.reason), row.message) for row in plan.waiting] == [
        (
            "NoFitOnNodes",
            (
                "gpu asks 3 for each of 3 pods that start together; the cluster's nodes have "
                "room for "
                "2 of them"
            ),
        )
    ]
