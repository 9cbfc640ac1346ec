"""The page My work: what a user holds, what the user's leaf may still get, what could start now,
and which pods wait before the user's. The figures are worked out by hand.
"""

from __future__ import annotations

from msgspec.structs import replace
from tests.console.clusters import (
    EPOCH,
    GATED,
    cluster,
    gpu_node,
    pod,
    reading,
    shared_node,
    training_job,
)
from tests.console.quota_demo import five, full
from tests.rules.sharing import placed

from fairlead.console.boards.board_state import BoardState
from fairlead.console.pages.mine import LeafResource, MyWait, Start
from fairlead.model.node import Condition, Node, Taint
from fairlead.model.pod import Owner, Pod
from fairlead.model.quota.rows import Namespace
from fairlead.model.quota.tree import QuotaNode
from fairlead.model.source import Source

GPU, MEMORY = "nvidia.com/gpu", "aliyun.com/gpu-mem"
MODEL = "aliyun.accelerator/nvidia_name"
USER = "arena.kubeflow.org/console-user"
UNSCHEDULABLE = (Condition("PodScheduled", "False", "Unschedulable", "0/1 nodes are available"),)


def of(user: str, made: Pod) -> Pod:
    return replace(made, labels={**made.labels, USER: user})


def gpu_tree(low: int, high: int, other_low: int = 0) -> QuotaNode:
    """8 GPUs: leaf a with team-a, and leaf b with team-b and no max of its own."""
    leaves = (
        QuotaNode("a", "root.a", "root", {GPU: low}, {GPU: high}, ("team-a",)),
        QuotaNode("b", "root.b", "root", {GPU: other_low}, {}, ("team-b",)),
    )
    return QuotaNode("root", "root", min={GPU: 8}, max={GPU: 8}, children=leaves)


def starts(seen: BoardState, namespace: str = "team-a") -> list[tuple[str, str, float]]:
    return [(each.resource, each.node, each.amount) for each in seen.my_work("", namespace).starts]


def start(seen: BoardState, namespace: str = "team-a") -> Start:
    [found] = seen.my_work("", namespace).starts
    return found


def waits(seen: BoardState, user: str = "", namespace: str = "") -> list[MyWait]:
    return seen.my_work(user, namespace).waits


def line_of(wait: MyWait) -> tuple[str, str | None, int | None, list[str], int]:
    return wait.name, wait.line, wait.position, [each.name for each in wait.ahead], wait.ahead_count


# --- which user is meant --------------------------------------------------------------------------


def test_without_a_name_it_lists_the_names_to_use() -> None:
    pods = [
        of("bob", pod("p", "gpu-1", {GPU: 1})),
        of("ann", pod("q", "gpu-1", {GPU: 1}, namespace="team-b")),
    ]
    found = BoardState(cluster([gpu_node()], pods, quota=gpu_tree(2, 4)), EPOCH).my_work("", "")
    assert (found.users, found.all_namespaces) == (["ann", "bob"], ["team-a", "team-b"])
    assert (found.sentence.code, found.namespaces, found.starts, found.waits, found.leaves) == (
        "mine-nobody",
        [],
        [],
        [],
        [],
    )
    assert BoardState(cluster([gpu_node()]), EPOCH).my_work("", "").sentence.code == "mine-unnamed"


def test_a_user_without_work_gets_the_reason() -> None:
    assert BoardState(cluster([gpu_node()]), EPOCH).my_work("eve", "").sentence.text == (
        "Nothing in this cluster belongs to eve."
    )


def test_only_mine_is_counted() -> None:
    """bob has two cards, through a job with his name, of which one idles; ann has another."""
    job = replace(training_job(gpus=1), annotations={"arena.kubeflow.org/username": "bob"})
    pods = [pod(f"bert-worker-{n}", "gpu-1", {GPU: 1}, job=job) for n in range(2)]
    other = of("ann", pod("x", "gpu-1", {GPU: 1}))
    idle = reading(ratio=0.0, holder=pods[0], idle_since=EPOCH - 7200)
    gpus = [idle, reading(index=1, holder=pods[1]), reading(index=2, holder=other)]
    found = BoardState(
        cluster(
            [gpu_node()],
            [*[replace(each, started_at=EPOCH - 9000) for each in pods], other],
            [job],
            gpus,
        ),
        EPOCH,
    )
    bob, ann = found.my_work("bob", "").held, found.my_work("ann", "").held
    assert (bob.pods, bob.gpus, bob.gpus_idle, bob.running) == (2, 2, 1, 1)
    assert (ann.pods, ann.gpus, ann.gpus_idle, ann.running) == (1, 1, 0, 0)
    assert found.my_work("", "team-a").held.gpus == 3


# --- my leaf --------------------------------------------------------------------------------------


def leaf(seen: BoardState, namespace: str, user: str = "") -> LeafResource:
    [found] = seen.my_work(user, "" if user else namespace).leaves
    return found.resources[0]


def test_what_a_full_tree_has_left_is_nothing() -> None:
    """Document 004: a.1 and a.2 use all 40 cores; b.1 is owed 10 and could borrow nothing more."""
    used = leaf(full(), "ns1")
    assert (used.used, used.mine, used.guaranteed, used.max, used.borrowable) == (20, 20, 10, 20, 0)
    owed = leaf(full(), "ns3")
    assert (owed.used, owed.guaranteed, owed.max, owed.borrowable) == (0, 10, 20, 0)


def test_what_may_be_borrowed_is_what_every_ceiling_leaves_above_the_guarantee() -> None:
    """a uses 1 of min 2, max 6; b uses 3 of 8 in all. a's own max leaves 5, the root's max 4, of
    which 1 is a's guarantee.
    """
    job = training_job()
    pods = [
        pod("p", "gpu-1", {GPU: 1}, job=job),
        *(pod(f"q{n}", "gpu-2", {GPU: 1}, namespace="team-b") for n in range(3)),
    ]
    seen = BoardState(
        cluster([gpu_node(), gpu_node("gpu-2")], pods, [job], quota=gpu_tree(2, 6)), EPOCH
    )
    assert leaf(seen, "team-a").borrowable == 3
    assert leaf(seen, "team-b").borrowable == 4


def test_of_what_the_leaf_uses_mine_is_what_my_pods_use() -> None:
    pods = [
        of("bob", five("ns1", 0)),
        of("ann", five("ns1", 1)),
        of("bob", five("ns1", 2, waits=True)),
    ]
    seen = BoardState(replace(full().snapshot, pods=tuple(pods)), EPOCH)
    assert (leaf(seen, "", "bob").mine, leaf(seen, "", "bob").used) == (5, 10)


def test_a_pod_that_should_be_gone_long_ago_is_no_longer_charged_to_the_leaf_nor_to_me() -> None:
    stuck = replace(of("bob", five("ns1", 1)), deleted_at=EPOCH - 3600)
    seen = BoardState(replace(full().snapshot, pods=(of("bob", five("ns1", 0)), stuck)), EPOCH)
    assert (leaf(seen, "", "bob").mine, leaf(seen, "", "bob").used) == (5, 5)


# --- what could start now -------------------------------------------------------------------------


def test_the_most_that_any_node_has_left_by_model() -> None:
    a100, v100 = {MODEL: "A100"}, {MODEL: "V100"}
    nodes = [
        gpu_node("a1", 4, labels=a100),
        gpu_node("a2", 4, labels=a100),
        gpu_node("v1", 2, labels=v100),
    ]
    pods = [pod("p", "a1", {GPU: 2}), pod("q", "a2", {GPU: 1})]
    seen = BoardState(cluster(nodes, pods), EPOCH)
    assert starts(seen) == [(GPU, "a2", 3), (GPU, "v1", 2)]
    first, second = seen.my_work("", "team-a").starts
    assert (first.selector, first.nodes, first.guaranteed, first.sentence.text) == (
        f"{MODEL}=A100",
        1,
        None,
        "3 × A100",
    )
    assert second.selector == f"{MODEL}=V100"


def test_nodes_that_take_no_pod_offer_nothing() -> None:
    tainted = replace(gpu_node("tainted"), taints=(Taint("team", "x", "NoSchedule"),))
    crowded = replace(gpu_node("crowded"), allocatable={**gpu_node().allocatable, "pods": 1})
    nodes = [
        gpu_node("cordoned", cordoned=True),
        gpu_node("silent", ready="Unknown"),
        gpu_node("down", ready="False"),
        tainted,
        crowded,
    ]
    assert starts(BoardState(cluster(nodes, [pod("full", "crowded", {"cpu": 1})]), EPOCH)) == []


def test_a_broken_card_is_not_promised() -> None:
    gpus = [reading(index=0, healthy=False), *(reading(index=n) for n in (1, 2, 3))]
    assert starts(BoardState(cluster([gpu_node()], gpus=gpus), EPOCH)) == [(GPU, "gpu-1", 3)]


def test_of_shared_memory_one_card_must_have_it() -> None:
    """Two cards of 40 with 25 and 10 taken: 15 and 30 are free, and no pod gets 45."""
    pods = [
        placed(pod(f"p{card}", "share-1", {MEMORY: taken}), "share-1", {"main": [(card, taken)]})
        for card, taken in ((0, 25), (1, 10))
    ]
    found = start(
        BoardState(cluster([replace(shared_node(), labels={"cgpu": "true"})], pods), EPOCH)
    )
    assert (found.resource, found.node, found.amount, found.memory_mib) == (
        MEMORY,
        "share-1",
        30,
        30 * 1024,
    )
    assert found.sentence.text == "30 GiB on a shared NVIDIA A100"


def test_quota_binds_where_it_has_less_room_than_nodes() -> None:
    """8 cards are free; the max of a leaves 3, of which 1 is guaranteed, so three would be borrowed
    in part.
    """
    job = training_job()
    pods = [pod("p", "gpu-1", {GPU: 1}, job=job)]
    seen = BoardState(cluster([gpu_node(gpus=9)], pods, [job], quota=gpu_tree(2, 4)), EPOCH)
    found = start(seen)
    assert (found.amount, found.on_nodes, found.guaranteed, found.reason) == (
        3,
        8,
        False,
        "OverMax",
    )
    assert "root.a" in found.waiting or "a" in found.waiting
    assert start(seen, "outside").amount == 8 and start(seen, "outside").guaranteed is None


def test_nothing_starts_in_a_namespace_that_does_not_exist() -> None:
    """Where the namespaces could not be read, any name may exist."""
    read = {"namespaces": Source("namespaces", good_at=EPOCH)}
    seen = BoardState(cluster([gpu_node()], namespaces=(Namespace("team-a"),), sources=read), EPOCH)
    assert starts(seen) == [(GPU, "gpu-1", 4)]
    found = seen.my_work("", "nosuch")
    assert (found.sentence.code, found.namespaces, found.starts) == ("mine-unknown", [], [])
    assert BoardState(cluster([gpu_node()]), EPOCH).my_work("", "nosuch").starts


def test_what_is_guaranteed_needs_no_loan() -> None:
    found = start(BoardState(cluster([gpu_node(gpus=2)], quota=gpu_tree(2, 4)), EPOCH))
    assert (found.amount, found.guaranteed) == (2, True)


def test_where_quota_leaves_nothing_it_prints_what_quota_reports() -> None:
    pods = [
        replace(pod(f"p{n}", "gpu-1", {GPU: 1}), owners=(Owner("ReplicaSet", "web", "u", True),))
        for n in range(4)
    ]
    found = start(BoardState(cluster([gpu_node(gpus=8)], pods, quota=gpu_tree(2, 4)), EPOCH))
    assert (found.amount, found.on_nodes, found.sentence.code, found.reason) == (
        0,
        4,
        "start-none",
        "OverMax",
    )


def test_nodes_of_one_model_without_a_common_label_are_asked_for_by_name() -> None:
    host = "kubernetes.io/hostname"
    nodes: list[Node] = [
        gpu_node("g1", 1, labels={host: "g1"}),
        gpu_node("g2", 2, labels={host: "g2"}),
    ]
    assert start(BoardState(cluster(nodes), EPOCH)).selector == f"{host}=g2"


# --- what waits, and behind which pods ------------------------------------------------------------


def test_in_the_queue_of_a_leaf_those_before_me_are_named_nearest_first() -> None:
    pods = [of("bob" if n == 3 else "ann", five("ns1", n, waits=True)) for n in range(5)]
    blocked = [five("ns2", n) for n in range(4)] + [five("ns3", n) for n in range(4)]
    seen = BoardState(replace(full().snapshot, pods=(*pods, *blocked)), EPOCH)
    [mine] = waits(seen, user="bob")
    assert line_of(mine) == ("web-ns1-3", "quota", 4, ["web-ns1-2", "web-ns1-1", "web-ns1-0"], 3)
    assert {each.user for each in mine.ahead} == {"ann"}


def test_in_the_schedulers_queue_priority_goes_before_age() -> None:
    """Of pods that request the same resource, the urgent one and the older one come first; the
    younger one comes later.
    """

    def asks(
        name: str, age: float, priority: int = 0, resource: str = GPU, user: str = "ann"
    ) -> Pod:
        made = of(user, pod(name, "", {resource: 1}, conditions=UNSCHEDULABLE))
        return replace(made, created_at=EPOCH - age, priority=priority)

    crowd = [
        asks("older", 500),
        asks("urgent", 10, 5),
        asks("younger", 50),
        asks("other", 900, 0, MEMORY),
        asks("mine", 100, user="bob"),
    ]
    [mine] = waits(BoardState(cluster([gpu_node(gpus=0)], crowd), EPOCH), user="bob")
    assert line_of(mine) == ("mine", "scheduler", 3, ["older", "urgent"], 2)


def test_a_job_is_one_however_many_of_its_pods_wait() -> None:
    before, mine = (
        training_job("before", created_at=EPOCH - 400, state="Created"),
        training_job("mine", state="Created"),
    )
    pods = [
        replace(
            pod(f"{job.name}-worker-{n}", "", {GPU: 1}, job=job, conditions=UNSCHEDULABLE),
            created_at=job.created_at,
        )
        for job in (before, mine)
        for n in range(2)
    ]
    found = {
        each.name: each
        for each in waits(
            BoardState(cluster([gpu_node(gpus=0)], pods, [before, mine]), EPOCH), namespace="team-a"
        )
    }
    assert line_of(found["mine"]) == ("mine", "scheduler", 2, ["before"], 1)
    assert line_of(found["before"]) == ("before", "scheduler", 1, [], 0)
    assert found["mine"].job == "pytorchjob/mine" and found["mine"].gpus == 2


def test_a_pod_that_waits_for_nothing_that_others_wait_for_stands_in_no_line() -> None:
    [wait] = waits(
        BoardState(
            cluster([gpu_node()], jobs=[training_job("held", state="Created", suspended=True)]),
            EPOCH,
        ),
        namespace="team-a",
    )
    assert (wait.line, wait.position, wait.waiting.reason) == (None, None, "Suspended")


def test_a_gated_pod_that_the_plan_would_admit_stands_in_no_line() -> None:
    seen = BoardState(
        cluster(
            [gpu_node()], [of("bob", pod("p", "", {GPU: 1}, gates=GATED))], quota=gpu_tree(2, 4)
        ),
        EPOCH,
    )
    [wait] = waits(seen, user="bob")
    assert (wait.line, wait.ahead) == (None, [])


def test_a_pod_that_waits_for_cores_alone_is_in_no_queue_for_gpus() -> None:
    [wait] = waits(
        BoardState(
            cluster([gpu_node()], [of("bob", pod("p", "", {"cpu": 1}, conditions=UNSCHEDULABLE))]),
            EPOCH,
        ),
        user="bob",
    )
    assert (wait.line, wait.position) == (None, None)
