"""The capacity of the cluster's nodes limits the root; mins that promise more than the nodes have
count in proportion.

See docs/spec/quota.md#cluster-nodes.
"""

from __future__ import annotations

import random
import time
from typing import Any

import pytest
from msgspec.structs import replace
from tests.rules.quota.small import SmallWorld, tree

from fairlead.model.quota.state import NodeRoom, QuotaPod, QuotaState
from fairlead.model.quota.tree import QuotaNode
from fairlead.rules.quota.account import QuotaAccount, account_of
from fairlead.rules.quota.plan import plan_account, plan_quota


def pod(name: str, leaf: str = "a", gpus: int = 1, **more: Any) -> QuotaPod:
    return QuotaPod(leaf, name, f"uid-{name}", {"gpu": gpus}, owner=f"owner-{name}", **more)


def running(name: str, leaf: str = "a", gpus: int = 1, node: str = "n1", **more: Any) -> QuotaPod:
    return replace(
        pod(name, leaf, gpus, **more), is_admitted=True, is_ready=True, admitted_at=1.0, node=node
    )


def room(name: str, gpus: int = 8, **more: Any) -> NodeRoom:
    return NodeRoom(name, {"gpu": gpus}, **more)


def mins(account: QuotaAccount) -> list[int]:
    """The mins of the leaves as they count."""
    plan_account(account, 0.0)
    return [account.index.min[place][0] for place in sorted(account.books)]


def test_root_gives_no_more_than_its_schedulable_nodes_have() -> None:
    """20 GPUs are promised. Of 24 on the nodes, 8 are cordoned and 6 used by uncounted pods, so
    each min counts as floor(10 x 10 / 20).
    """
    nodes = (room("n1"), room("n2", taken={"gpu": 6}), room("n3", is_schedulable=False))
    pods = (
        *(pod(f"a{number}") for number in range(9)),
        *(pod(f"b{number}", "b") for number in range(9)),
    )
    state = QuotaState(tree("root[20]{a[10] b[10]}"), pods, nodes=nodes)
    assert mins(account_of(state)) == [5, 5]
    assert (
        sorted(each.leaf for each in plan_quota(state).admit if each.is_guaranteed)
        == ["a"] * 5 + ["b"] * 5
    )


def test_an_unlimited_root_honours_mins() -> None:
    """The root has no max, so only the nodes' capacity shows that `b` uses what `a` is owed."""
    root = QuotaNode(
        "root", "root", children=tree("root[8]{a[4] b[0]}").children, unlimited=("gpu",)
    )
    pods = (*(running(f"b{number}", "b") for number in range(8)), pod("a1"))
    assert len(plan_quota(QuotaState(root, pods, nodes=(room("n1"),))).evict) == 1
    assert plan_quota(QuotaState(root, pods, nodes=(room("n1"), room("n2")))).evict == ()


def test_a_min_counts_at_least_what_non_preemptible_pods_use() -> None:
    """10 of 20 promised GPUs exist, so each min counts as 5. But the non-preemptible pods of `a`
    use 8, so its min counts as 8, and less as they go.
    """
    firm = tuple(running(f"f{number}", is_preemptible=False) for number in range(8))
    account = account_of(QuotaState(tree("root[20]{a[10] b[10]}"), firm, nodes=(room("n1", 10),)))
    assert mins(account) == [8, 5]
    account.drop("uid-f0")
    assert mins(account) == [7, 5]
    more = plan_quota(
        QuotaState(
            tree("root[20]{a[10] b[10]}"),
            (*firm[:4], pod("f9", gpus=2, is_preemptible=False)),
            nodes=(room("n1", 10),),
        )
    )
    assert [str(row.reason) for row in more.waiting] == ["NonPreemptibleOverMin"], (
        "not NeverFits: nodes may come"
    )


def test_what_inner_nodes_keep_shares_what_leaves_are_not_promised() -> None:
    """20 GPUs exist. The mins of leaves promise 10, which count in full. `x` keeps 20 more than its
    child's min and `y` 10 more; they share the other 10.
    """
    root = tree("root[40]{x[25]{c[5]} y[15]{d[5]}}")
    keeps = replace(
        root, children=(replace(root.children[0], lend_limit={"gpu": 0}), root.children[1])
    )
    pods = tuple(pod(f"d{number}", "d") for number in range(12))
    account = account_of(QuotaState(keeps, pods, nodes=(room("n1", 20),)))
    assert len(plan_account(account, 0.0).admit) == 9, (
        "what x does not lend is never more than there is"
    )
    assert {
        name: account.index.min[place][0] for place, name in enumerate(account.index.names)
    } == {
        "root": 20,
        "x": 11,
        "c": 5,
        "y": 8,
        "d": 5,
    }


def test_parents_count_with_their_children() -> None:
    firm = tuple(running(f"f{number}", "c", is_preemptible=False) for number in range(8))
    account = account_of(
        QuotaState(tree("root[20]{x[10]{c[10]} b[10]}"), firm, nodes=(room("n1", 10),))
    )
    plan_account(account, 0.0)
    assert {
        name: account.index.min[place][0] for place, name in enumerate(account.index.names)
    } == {"root": 10, "x": 8, "c": 8, "b": 5}


@pytest.mark.parametrize(
    ("nodes", "reason"),
    [
        ((NodeRoom("n1", {"cpu": 1000}),), "NoFitOnNodes"),
        ((room("n1", 0),), "NoFitOnNodes"),
        ((), "NoFitOnNodes"),
        ((room("n1", is_schedulable=False),), "NoFitOnNodes"),
    ],
    ids=[
        "no node offers it",
        "the device plugin is late",
        "no node is listed",
        "all nodes are cordoned",
    ],
)
def test_nodes_that_are_unknown_bind_nothing(nodes: tuple[NodeRoom, ...], reason: str) -> None:
    """Nothing is evicted, and no pod gets the reason that it can never run."""
    pods = (*(running(f"b{number}", "b") for number in range(3)), pod("a1", gpus=2))
    state = QuotaState(tree("root[4]{a[4] b[0]}"), pods, nodes=nodes)
    account, plan = account_of(state), plan_quota(state)
    assert mins(account) == [4, 0]
    assert account.index.max[0] == [4]
    assert (plan.admit, plan.evict, [str(row.reason) for row in plan.waiting]) == ((), (), [reason])


def test_a_lowered_ceiling_evicts_no_pod() -> None:
    """16 GPUs are in use when a node is cordoned, loses its device plugin or gets uncounted pods.
    No pod is evicted, even in a root that drains.
    """
    drains = tree("root[16]{a[16] b[0]}", {"root": {"fairlead.io/drain-over-max": "true"}})
    pods = tuple(
        running(f"{leaf}{number}", leaf, node=node)
        for leaf, node in (("a", "n1"), ("b", "n2"))
        for number in range(8)
    )
    for second in (room("n2", is_schedulable=False), room("n2", 0), room("n2", taken={"gpu": 4})):
        assert plan_quota(QuotaState(drains, pods, nodes=(room("n1"), second))).is_empty


@pytest.mark.parametrize(
    "second",
    [room("n2", is_schedulable=False), room("n2", 0)],
    ids=["cordoned", "its device plugin is away"],
)
def test_what_runs_on_a_closed_node_takes_nothing_from_the_others(second: NodeRoom) -> None:
    """Two GPUs of n1 are free. They are given, although 14 are in use and n1 alone has 8. A
    claimant for 3 evicts one pod, not nine.
    """
    pods = tuple(
        running(f"b{number}", "b", node="n1" if number < 6 else "n2") for number in range(14)
    )
    root = tree("root[16]{a[4] b[0]}")
    nodes = (room("n1"), second)
    assert [
        each.pod.name
        for each in plan_quota(QuotaState(root, (*pods, pod("a1", gpus=2)), nodes=nodes)).admit
    ] == ["a1"]
    plan = plan_quota(QuotaState(root, (*pods, pod("a1", gpus=3)), nodes=nodes))
    assert [each.pod.node for each in plan.evict] == ["n1"]


def test_a_pod_that_is_lost_holds_nothing() -> None:
    """The pods of a dead node stop for ever. After five minutes they are not charged, and their
    node is not counted.
    """
    gone = tuple(
        running(f"a{number}", node="n2", is_stopping=True, stopping_at=0.0) for number in range(8)
    )
    state = QuotaState(
        tree("root[16]{a[8] b[8]}"), gone, nodes=(room("n1"), room("n2", is_schedulable=False))
    )
    for now, there in ((299.0, 16), (300.0, 8)):
        account = account_of(state)
        plan_account(account, now)
        assert account.index.max[0] == [there]


def test_more_than_all_nodes_have_waits_for_nodes_to_come() -> None:
    """The pod could run one day. It holds back no other pod and makes nothing scarce, and its
    message gives the capacity that exists.
    """
    root = tree("root[40]{a[20] b[20]}")
    world = SmallWorld(root, nodes=(room("n1"), room("n2")))
    world.add("a", 1, 20)
    world.add("b", 1, 8)
    world.settle()
    assert world.running("a", "b") == (0, 1)
    assert world.reasons("a") == {"NoFitOnNodes": 1}
    assert world.sentences("a") == ["gpu asks 20; the cluster's nodes have 16 in all"]
    world.add("a", 1, 50)
    assert world.sentences("a")[-1] == "gpu asks 50; root max is 40; this pod can never run here"


def test_the_sentences_name_what_the_nodes_have() -> None:
    pods = (*(running(f"a{number}") for number in range(8)), pod("a9"), pod("b9", "b"))
    plan = plan_quota(QuotaState(tree("root[40]{a[0] b[0]}"), pods, nodes=(room("n1"),)))
    assert [(str(row.reason), row.message) for row in plan.waiting] == [
        ("OverMax", "gpu asks 1; root uses 8 of the 8 that the cluster's nodes have"),
        (
            "WaitingForIdleQuota",
            "gpu asks 1; root 8/8 in use, the cluster's nodes have 8; b uses 0 of guaranteed "
            "0, so it may only borrow idle quota; "
            "biggest borrowers: a +8",
        ),
    ]


@pytest.mark.parametrize("resource", ["gpu", "cpu"])
def test_nodes_that_come_are_used(resource: str) -> None:
    """As in the controller, the account is updated when nodes come."""
    root = QuotaNode(
        "root",
        "root",
        "",
        {"gpu": 16, "cpu": 16},
        {"gpu": 16, "cpu": 16},
        children=tree("root[16]{a[8] b[8]}").children,
    )
    account = QuotaAccount(root)
    for each in (
        *(running(f"r{number}", gpus=1) for number in range(8)),
        *(pod(f"b{number}", "b") for number in range(8)),
    ):
        account.put(replace(each, request={resource: 1}))
    account.set_nodes((NodeRoom("n1", {"gpu": 8, "cpu": 8}),))
    first = plan_account(account, 1.0)
    assert (len(first.admit), len(first.evict)) == (0, 0 if resource == "cpu" else 4)
    account.set_nodes((NodeRoom("n1", {"gpu": 8, "cpu": 8}), NodeRoom("n2", {"gpu": 8, "cpu": 8})))
    assert len(plan_account(account, 2.0).admit) == 8


def changed(chance: random.Random, nodes: list[NodeRoom]) -> None:
    place = chance.randrange(len(nodes))
    node = nodes[place]
    if chance.random() < 0.3:
        nodes[place] = replace(node, is_schedulable=not node.is_schedulable)
    elif chance.random() < 0.5:
        nodes[place] = replace(
            node, allocatable={each: chance.choice((0, 4, 8)) for each in node.allocatable}
        )
    else:
        nodes[place] = replace(node, taken={"gpu": chance.randint(0, 8)})


@pytest.mark.long
def test_a_capacity_that_changes_is_cheap() -> None:
    """A pod that quota does not count comes to one of 1,000 nodes, in a tree that promises more
    than exists: no leaf's pods are read again.
    """
    leaves = tuple(
        QuotaNode(f"l{n}", f"l{n}", "root", {"gpu": 60}, {}, (f"l{n}",)) for n in range(1000)
    )
    root = QuotaNode("root", "root", "", {"gpu": 60_000}, {"gpu": 60_000}, children=leaves)
    nodes = [NodeRoom(f"n{n}", {"gpu": 48}) for n in range(1000)]
    pods = tuple(running(f"p{n}", f"l{n % 1000}", node=f"n{n // 50}") for n in range(50_000))
    account = account_of(QuotaState(root, pods, nodes=tuple(nodes)))
    plan_account(account, 0.0)
    took = []
    for number in range(9):
        nodes[number] = replace(nodes[number], taken={"gpu": 1})
        account.set_nodes(tuple(nodes))
        begun = time.thread_time()
        account.settle(0.0)
        took.append(time.thread_time() - begun)
        assert account.reread == []
    assert min(took) < 0.02, took


def test_shares_are_parts_of_what_there_is_now() -> None:
    """a uses 40 of 50 GPUs, b 45 of 55 cpu: a is first. With five more cpu the share of b is the
    smaller one.
    """
    leaves = tuple(QuotaNode(name, name, "root", {}, {}, (name,)) for name in "abc")
    root = QuotaNode("root", "root", children=leaves, unlimited=("cpu", "gpu"))
    account = QuotaAccount(root)
    for leaf, cpu, gpus in (("a", 10, 40), ("b", 45, 10)):
        account.put(replace(running(leaf, leaf), request={"cpu": cpu, "gpu": gpus}))
    for leaf, request in (("a", {"cpu": 5}), ("b", {"cpu": 5}), ("c", {"gpu": 1})):
        account.put(replace(pod(f"{leaf}-waits", leaf), request=request))
    first = NodeRoom("n1", {"cpu": 55, "gpu": 50})
    account.set_nodes((first,))
    assert plan_account(account, 1.0).admit == ()
    account.set_nodes((first, NodeRoom("n2", {"cpu": 5, "gpu": 0})))
    assert [each.pod.name for each in plan_account(account, 2.0).admit] == ["b-waits"]


def test_a_root_that_drains_does_so_to_the_max_that_is_written() -> None:
    """Pods that are not bound yet make the use larger than the nodes' capacity; the root drains to
    its written max only.
    """
    drains = tree("root[16]{a[16]}", {"root": {"fairlead.io/drain-over-max": "true"}})
    pods = tuple(running(f"a{number}", node="n1" if number < 8 else "") for number in range(16))
    assert plan_quota(QuotaState(drains, pods, nodes=(room("n1"),))).is_empty
    one_more = (*pods, running("a16"))
    (evicted,) = plan_quota(QuotaState(drains, one_more, nodes=(room("n1"),))).evict
    assert evicted.message == "root gives up what it uses above its max of 16 gpu"


def test_a_kept_sentence_follows_what_there_is() -> None:
    """20 GPUs are promised. 12 exist: the min of `a` counts as 6; 13: still 6, but of 13; 11: 5. No
    pod changes.
    """
    root = tree("root[20]{a[10] b[10]}")
    firm = tuple(running(f"f{number}", is_preemptible=False) for number in range(5))
    account = account_of(
        QuotaState(root, (*firm, pod("f9", gpus=4, is_preemptible=False)), nodes=(room("n1", 12),))
    )

    def message() -> str:
        [row] = plan_account(account, 1.0).waiting()
        return row.message

    assert "configured 20, available 12, so 10 counts as 6" in message()
    account.set_nodes((room("n1", 13),))
    assert "configured 20, available 13, so 10 counts as 6" in message()
    account.set_nodes((room("n1", 11),))
    assert "configured 20, available 11, so 10 counts as 5" in message()
