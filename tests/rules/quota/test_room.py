"""Whether units fit on cluster nodes (docs/spec/quota.md#cluster-nodes)."""

from __future__ import annotations

import random
import time
from typing import Any

import pytest
from msgspec.structs import replace
from tests.rules.builders import shared_node, sharing_pod

from fairlead.model.node import Condition, Node, Taint
from fairlead.model.node_choice import ANY_NODE, Expression, NodeChoice, Term, Toleration
from fairlead.model.pod import Container, Pod, PodPhase
from fairlead.model.quota.state import NodeRoom, QuotaPod
from fairlead.rules.quota.room import Rooms, holes_of, is_schedulable, node_room, taken_by

GPU = "nvidia.com/gpu"
GPU_MEMORY = "aliyun.com/gpu-mem"


def room(name: str, cpu: int = 8, **more: Any) -> NodeRoom:
    return NodeRoom(name, {"cpu": cpu, **more.pop("offers", {})}, **more)


def pod(
    name: str = "p", cpu: int = 1, node: str = "", *, is_admitted: bool = False, **more: Any
) -> QuotaPod:
    request = {"cpu": cpu, **more.pop("asks", {})}
    return QuotaPod(
        "ns",
        name,
        f"uid-{name}",
        request=request,
        node=node,
        is_admitted=is_admitted or bool(node),
        **more,
    )


def gang(count: int, cpu: int) -> list[QuotaPod]:
    return [pod(f"g{i}", cpu) for i in range(count)]


def test_all_requests_count_managed_or_not() -> None:
    rooms = Rooms([room("n", 8, offers={"memory": 100})])
    assert rooms.fits([pod(cpu=8, asks={"memory": 100})])
    assert not rooms.fits([pod(cpu=9)])
    assert not rooms.fits([pod(asks={"memory": 101})])
    assert not rooms.fits([pod(asks={GPU: 1})]), "no node offers it"
    assert rooms.fits([pod(asks={GPU: 0})])


def test_strangers_and_the_pods_that_quota_counts_take_room() -> None:
    rooms = Rooms([room("n", 8, taken={"cpu": 3})], [pod("a", 2, "n"), pod("elsewhere", 8, "gone")])
    assert rooms.fits([pod(cpu=3)])
    assert not rooms.fits([pod(cpu=4)])


def test_a_stopping_pod_takes_room_until_it_is_gone() -> None:
    assert not Rooms([room("n", 8)], [pod("a", 5, "n", is_stopping=True)]).fits([pod(cpu=4)])


def test_an_admitted_pod_on_its_way_takes_what_first_fits() -> None:
    on_its_way = pod("a", 6, is_admitted=True)
    assert not Rooms([room("n1", 8), room("n2", 4)], [on_its_way]).fits([pod(cpu=5)])
    assert Rooms([room("n1", 8), room("n2", 4)], [on_its_way]).fits([pod(cpu=4)])
    assert Rooms([room("n1", 4)], [on_its_way]).fits([pod(cpu=4)]), (
        "one that fits nowhere takes nothing"
    )
    assert Rooms([room("n1", 8)], [pod("w", 6)]).fits([pod(cpu=8)]), "one that waits takes nothing"
    stopping = pod("s", 6, is_admitted=True, is_stopping=True)
    assert Rooms([room("n1", 8)], [stopping]).fits([pod(cpu=8)]), (
        "one that stops without a node never gets one"
    )


@pytest.mark.parametrize(
    ("count", "cpu", "fits"),
    [(4, 4, True), (5, 4, False), (2, 8, True), (3, 5, False), (16, 1, True), (17, 1, False)],
)
def test_a_gang_fits_beside_itself(count: int, cpu: int, fits: bool) -> None:
    assert Rooms([room("n1", 8), room("n2", 8)]).fits(gang(count, cpu)) is fits


def test_the_largest_of_a_gang_is_laid_out_first() -> None:
    assert Rooms([room("n1", 4), room("n2", 8)]).fits(
        [pod("small", 2), pod("other", 4), pod("large", 6)]
    )


def test_places_for_pods_run_out_too() -> None:
    rooms = Rooms(
        [room("n", 8, offers={"pods": 3}, taken={"cpu": 1, "pods": 1})], [pod("a", 1, "n")]
    )
    assert rooms.fits(gang(1, 1))
    assert not rooms.fits(gang(2, 1))


@pytest.mark.parametrize(
    ("choice", "fits"),
    [
        (ANY_NODE, False),
        (NodeChoice(tolerations=(Toleration("gpu", "Exists"),)), True),
        (NodeChoice(selector=(("pool", "b"),), tolerations=(Toleration("gpu", "Exists"),)), False),
        (
            NodeChoice(
                terms=(Term((Expression("pool", "In", ("a",)),)),),
                tolerations=(Toleration("gpu", "Exists"),),
            ),
            True,
        ),
        (
            NodeChoice(
                terms=(Term(fields=(Expression("metadata.name", "In", ("other",)),)),),
                tolerations=(Toleration(operator="Exists"),),
            ),
            False,
        ),
    ],
)
def test_selector_affinity_and_taints_count(choice: NodeChoice, fits: bool) -> None:
    rooms = Rooms([room("n", 8, labels={"pool": "a"}, taints=(Taint("gpu", "", "NoSchedule"),))])
    assert rooms.fits([pod(choice=choice)]) is fits


def test_a_node_that_takes_no_pods_has_no_room_and_no_capacity() -> None:
    rooms = [room("n1", 8, is_schedulable=False), room("n2", 2)]
    assert not Rooms(rooms).fits([pod(cpu=3)])
    assert Rooms(rooms).capacity(("cpu",)) == (2,)


def test_gpu_memory_must_be_free_on_one_card() -> None:
    node = room("n", 8, offers={GPU_MEMORY: 30}, holes=(6, 4))
    for units, fits in ((6, True), (7, False)):
        assert Rooms([node]).fits([pod(asks={GPU_MEMORY: units}, card_units=units)]) is fits
    assert Rooms([node]).fits([pod(asks={GPU_MEMORY: 10}, card_units=5)]), (
        "split over two: what is asked of one card counts"
    )
    pair = [pod(name, asks={GPU_MEMORY: 4}, card_units=4) for name in "ab"]
    assert Rooms([node]).fits(pair), "the smallest hole that holds it: 4, then 6"
    assert not Rooms([node]).fits([*pair, pod("c", asks={GPU_MEMORY: 4}, card_units=4)])
    assert Rooms([room("n", 8, offers={GPU_MEMORY: 30})]).fits(
        [pod(asks={GPU_MEMORY: 20}, card_units=20)]
    ), "cards that cannot be distinguished"


def test_victims_make_room_until_they_stay() -> None:
    a, b = pod("a", 5, "n1"), pod("b", 3, "n2", asks={GPU_MEMORY: 4}, card_units=4)
    rooms = Rooms([room("n1", 8), room("n2", 8, offers={GPU_MEMORY: 8}, holes=(1, 3))], [a, b])
    wanted = pod("w", 8, asks={GPU_MEMORY: 5}, card_units=5)
    assert not rooms.fits([wanted])
    left = rooms.leave([b])
    assert rooms.fits([wanted])
    assert rooms.fits_on(wanted, "n2")
    assert not rooms.fits_on(wanted, "n1")
    rooms.stay(left)
    assert not rooms.fits([wanted])
    assert rooms.fits([pod("w", 5, asks={GPU_MEMORY: 3}, card_units=3)]), "all is as it was"


def test_what_is_laid_out_can_be_taken_back() -> None:
    rooms = Rooms([room("n1", 4), room("n2", 4)])
    placed = rooms.seat(gang(2, 3))
    assert placed is not None
    assert [each.node for each in placed] == ["n1", "n2"]
    assert rooms.seat(gang(1, 2)) is None
    rooms.unseat(placed)
    assert rooms.fits(gang(2, 4))


def test_the_freest_node_is_named() -> None:
    """As in the specification's example: asks 4 on one node; the freest of 3 nodes,
    gpu-1, has 2.
    """
    nodes = [
        room(f"gpu-{i}", 8, offers={GPU: 4}, taken={GPU: 4 - free})
        for i, free in ((1, 2), (2, 1), (3, 0))
    ]
    assert Rooms(nodes).freest(pod(asks={GPU: 4})) == (GPU, "gpu-1", 2, 3)
    assert Rooms(nodes).freest(pod(choice=NodeChoice(selector=(("pool", "x"),)))) is None
    cards = [room("s", 8, offers={GPU_MEMORY: 30}, holes=(3, 5))]
    assert Rooms(cards).freest(pod(asks={GPU_MEMORY: 7}, card_units=7)) == (GPU_MEMORY, "s", 5, 1)


def fits_anywhere(nodes: list[NodeRoom], bound: list[QuotaPod], one: QuotaPod) -> bool:
    """A slow, plain oracle: whether the pod fits into the allocatable amounts of one node, minus
    everything on it.
    """
    for node in nodes:
        used = {
            name: node.taken.get(name, 0)
            + sum(each.request.get(name, 0) for each in bound if each.node == node.name)
            for name in one.request
        }
        labels = all(node.labels.get(key) == value for key, value in one.choice.selector)
        if (
            node.is_schedulable
            and labels
            and all(
                used[name] + amount <= node.allocatable.get(name, 0)
                for name, amount in one.request.items()
            )
        ):
            return True
    return False


@pytest.mark.parametrize("seed", range(40))
def test_whatever_comes_and_goes_the_answer_is_the_plain_one(seed: int) -> None:
    """Answers do not depend on earlier questions, although the results of earlier questions are
    cached.
    """
    chance = random.Random(seed)
    nodes = [
        room(
            f"n{i}",
            chance.randint(0, 9),
            labels={"pool": chance.choice("ab")},
            is_schedulable=chance.random() < 0.9,
            offers={GPU: chance.randint(0, 4)},
        )
        for i in range(8)
    ]
    choices = [ANY_NODE, NodeChoice(selector=(("pool", "a"),))]
    rooms, there = Rooms(nodes), []
    for step in range(120):
        one = pod(
            f"p{step}",
            chance.randint(0, 5),
            asks={GPU: chance.randint(0, 3)},
            choice=chance.choice(choices),
        )
        bound = [replace(placed.pod, node=placed.node) for placed in there]
        assert rooms.fits([one]) == fits_anywhere(nodes, bound, one), f"seed {seed}, step {step}"
        if chance.random() < 0.5 and (placed := rooms.seat([one])):
            there += placed
        elif there and chance.random() < 0.7:
            rooms.unseat([there.pop(chance.randrange(len(there)))])


@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_rows_does_not_matter(seed: int) -> None:
    chance = random.Random(seed)
    nodes = [room(f"n{i}", 4 + i) for i in range(5)]
    pods = [pod(f"a{i}", 1 + i % 4, is_admitted=True) for i in range(7)]
    wanted = Rooms(nodes, pods).seat(gang(3, 2))
    chance.shuffle(nodes)
    chance.shuffle(pods)
    assert Rooms(nodes, pods).seat(gang(3, 2)) == wanted


@pytest.mark.long
def test_five_thousand_nodes_and_hundreds_of_waiting_pods_are_quick() -> None:
    """In a full cluster every question looks at every node the first time. The limit, well under a
    second, is a few times the usual duration.
    """
    nodes = [
        NodeRoom(f"n{i:04d}", {"cpu": 64_000, "memory": 1 << 38, GPU: 8, "pods": 110})
        for i in range(5_000)
    ]
    bound = [
        QuotaPod(
            "ns", f"b{i}-{j}", request={"cpu": 30_000, GPU: 4}, is_admitted=True, node=f"n{i:04d}"
        )
        for i in range(5_000)
        for j in (1, 2)
    ]
    rooms = Rooms(nodes, bound)
    waiting = [
        QuotaPod("ns", f"w{i}", request={"cpu": 1_000 * (1 + i % 12), GPU: 1}) for i in range(400)
    ]
    begin = time.process_time()
    assert not any(rooms.fits([each]) for each in waiting)
    assert time.process_time() - begin < 1.0


# --- what nodes offer -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("conditions", "more", "counts"),
    [
        ((Condition("Ready", "True"),), {}, True),
        ((Condition("Ready", "True"),), {"unschedulable": True}, False),
        ((Condition("Ready", "False", at=701.0),), {}, True),
        ((Condition("Ready", "Unknown", at=700.0),), {}, False),
        ((), {"created_at": 990.0}, True),
        ((), {"created_at": 100.0}, False),
    ],
)
def test_a_node_counts_until_it_was_not_ready_for_five_minutes(
    conditions: tuple[Condition, ...], more: dict[str, Any], counts: bool
) -> None:
    assert is_schedulable(Node("n", conditions=conditions, **more), 1000.0) is counts


def test_a_node_offers_what_it_has_less_what_strangers_take() -> None:
    stranger = Pod(
        "kube-system",
        "dns",
        node="n",
        phase=PodPhase.RUNNING,
        containers=(Container("c", requests={"cpu": 100}),),
    )
    node = Node(
        "n",
        allocatable={"cpu": 4000, "pods": 10},
        labels={"pool": "a"},
        taints=(Taint("t"),),
        conditions=(Condition("Ready", "True"),),
    )
    found = node_room(node, taken_by([stranger, stranger]), (), 0.0)
    assert found == NodeRoom(
        "n", {"cpu": 4000, "pods": 10}, {"cpu": 200, "pods": 2}, {"pool": "a"}, (Taint("t"),)
    )


def test_holes_are_the_free_units_of_shared_cards() -> None:
    node = replace(shared_node("s1", (15, 15)), labels={"cgpu": "true"})
    held = sharing_pod("p", "s1", 4, card=1)
    assert holes_of(node, [held]) == (15, 11)
    assert holes_of(node, [held], withheld=(0,)) == (11,), (
        "a card that an operator took out has no room"
    )
    assert holes_of(replace(node, labels={}), [held]) == (), "a node whose GPUs are not shared"
    assert holes_of(Node("plain"), []) == ()
