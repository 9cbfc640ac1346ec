"""The account of a node: the sums of its cards equal the node's total, tenants hold what they were
granted, and a tenant that goes releases everything.
"""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from tests.rules.held import held_at_most
from tests.rules.sharing import container, node, placed, pod

from fairlead.model.devices.gpu import GpuReading, GpuSlot, Grant
from fairlead.model.node import Node
from fairlead.model.pod import Pod
from fairlead.model.resources import GPU_COUNT, GPU_MEMORY, NVIDIA_GPU
from fairlead.rules.holding.account import UNHEALTHY, NodeAccount, account, tenant_of

UNITS = {"GiB": 1024, "MiB": 1}


@st.composite
def share_nodes(draw: st.DrawFn) -> Node:
    """Nodes with an inventory, nodes with only a count of GPUs, and nodes without what neither
    labels nor annotations contain.
    """
    units = draw(st.lists(st.integers(1, 200), min_size=1, max_size=5))
    notes = draw(
        st.sampled_from(
            [{}, {"fairlead.io/gpu-mem-unit": "GiB"}, {"fairlead.io/gpu-mem-unit": "MiB"}]
        )
    )
    shared = node(
        "n",
        units,
        labels=draw(st.sampled_from([{"cgpu": "true"}, {}])),
        core=draw(st.booleans()),
        **notes,
    )
    if draw(st.booleans()):
        return shared
    left = draw(st.integers(-3, 3))
    return msgspec.structs.replace(
        shared, gpus=(), capacity={**shared.capacity, GPU_MEMORY: max(1, sum(units) + left)}
    )


@st.composite
def tenants(draw: st.DrawFn) -> list[Pod]:
    """Bound pods: most with a grant, of cards that exist and of others, some with an init container
    that needs more, some without a grant.
    """
    found = []
    for number in range(draw(st.integers(0, 6))):
        units, index = draw(st.integers(1, 12)), draw(st.integers(0, 5))
        init = draw(st.integers(0, 15))
        more = {"init_containers": (container("init", init),)} if init else {}
        grants = {"main": [(index, units)], **({"init": [(index, init)]} if init else {})}
        asker = pod(
            f"p{number}", units, phase=draw(st.sampled_from(["Running", "Pending"])), **more
        )
        found.append(placed(asker, "n", draw(st.sampled_from([grants, grants, grants, {}]))))
    return found


READINGS = st.lists(
    st.builds(
        GpuReading,
        node=st.just("n"),
        index=st.integers(0, 5),
        uuid=st.sampled_from(["", "GPU-n-0", "GPU-n-1", "GPU-other"]),
        memory_total_mib=st.sampled_from([None, 16130.0]),
        healthy=st.sampled_from([None, True, False]),
    ),
    max_size=4,
    unique_by=lambda reading: reading.index,
)


def held(pods: list[Pod]) -> dict[str, int]:
    """The most that pods hold of each card, by the card that the grant names."""
    sums: dict[str, int] = {}
    for each in pods:
        for uuid, (units, _) in held_at_most(each).items():
            sums[uuid] = sums.get(uuid, 0) + units
    return sums


def numbers(found: NodeAccount) -> list[tuple[object, ...]]:
    return [
        (card.key, card.used, card.core_used, card.free, card.core_free) for card in found.cards
    ]


@given(share_nodes(), tenants())
def test_cards_and_strays_together_hold_what_was_granted(shared: Node, pods: list[Pod]) -> None:
    found, granted = account(shared, pods), held(pods)
    assert sum(card.used for card in found.cards) + sum(found.strays.values()) == sum(
        granted.values()
    )
    for card in found.cards:
        name = card.uuid or f"GPU-n-{card.index}"
        assert card.used == granted.get(name, 0)
        assert card.used == sum(
            seat.grant.units
            for each in found.tenants.values()
            for seat in found.seats(each)
            if seat.card is card
        )


@given(share_nodes(), tenants())
def test_nothing_is_free_that_is_held_or_not_there(shared: Node, pods: list[Pod]) -> None:
    found = account(shared, pods)
    for card in found.cards:
        assert 0 <= card.free <= max(0, card.units - card.used)
        assert card.overcommitted == max(0, card.used - card.units)
    assert found.overcommitted >= sum(found.strays.values())


@given(share_nodes())
def test_the_cards_add_up_to_the_node(shared: Node) -> None:
    """The MiB are exact; the whole units, in which cards are granted, never sum to more."""
    found, total = account(shared), shared.capacity[GPU_MEMORY]
    assert sum(card.units for card in found.cards) <= total
    if not shared.gpus:
        mib = sum(card.gpu.memory_total_mib or 0 for card in found.cards)
        assert abs(mib - total * UNITS[found.unit]) < 0.001
        assert len(found.cards) == shared.capacity[GPU_COUNT]


@given(share_nodes(), tenants(), st.randoms(use_true_random=False))
def test_in_whatever_order_pods_come_and_go_the_account_is_that_of_the_rest(
    shared: Node, pods: list[Pod], chance: object
) -> None:
    stay = pods[::2]
    shuffled = list(pods)
    chance.shuffle(shuffled)  # type: ignore[attr-defined]
    found = account(shared, shuffled)
    copied = found.without([each.uid for each in pods[1::2]])
    assert numbers(found) == numbers(account(shared, pods)), "the copy has not changed it"
    for each in pods[1::2]:
        found.unseat(each.uid)
    expected = account(shared, stay)
    assert numbers(found) == numbers(copied) == numbers(expected)
    assert found.strays == copied.strays == expected.strays


@given(share_nodes(), tenants(), READINGS)
def test_what_devices_report_never_moves_a_grant_and_never_frees_memory(
    shared: Node, pods: list[Pod], readings: list[GpuReading]
) -> None:
    plain, found = account(shared, pods), account(shared, pods, readings)
    by_key = {card.key: card for card in found.cards}
    assert found.unit == plain.unit
    for card in plain.cards:
        other = by_key[card.key]
        assert (other.units, other.used, other.core_used) == (card.units, card.used, card.core_used)
        assert other.free == (0 if other.gpu.is_healthy is False else card.free)
    assert all(
        not card.free for card in found.cards if card.key not in {each.key for each in plain.cards}
    )


def test_two_cards_that_claim_one_uuid_take_no_pod() -> None:
    found = account(
        node("n", (15, 15), slots={1: {"uuid": "GPU-n-0"}}),
        [placed(pod(), "n", {"main": [(0, 4)]})],
    )
    assert [(card.trouble, card.free) for card in found.cards] == [(UNHEALTHY, 0)] * 2
    assert sum(card.used for card in found.cards) == 4


def test_a_card_that_an_operator_took_out_gives_nothing_and_keeps_its_tenants() -> None:
    found = account(node(), [placed(pod(), "n", {"main": [(0, 4)]})], withheld=(0,))
    assert [(card.used, card.free, card.trouble) for card in found.cards] == [
        (4, 0, UNHEALTHY),
        (0, 15, None),
    ]


def test_a_whole_card_is_a_seat_and_no_units() -> None:
    """The provider of GPU topology grants cards by index, to the whole pod."""
    whole = Node("n", capacity={NVIDIA_GPU: 2})
    asker = Pod("ns", "p", node="n", grants={"": (Grant("", 1, 0),)})
    found = account(whole, [asker])
    assert [(seat.index, seat.is_whole) for seat in found.seats_of(asker)] == [(1, True)]
    assert [card.used for card in found.cards] == [0, 0]


def test_an_inventory_without_units_shares_the_nodes_in_equal_parts() -> None:
    """docs/spec/gpu-sharing.md#node-labels-annotations-and-inventory: gpu-mem divided by gpu-count.
    A third card, which is not counted, has none.
    """
    slots = tuple(GpuSlot(index, f"GPU-{index}", mode="shared") for index in range(3))
    found = account(
        Node("n", labels={"cgpu": "true"}, capacity={GPU_MEMORY: 30, GPU_COUNT: 2}, gpus=slots)
    )
    assert [(card.units, card.memory_mib) for card in found.cards] == [
        (15, 15360),
        (15, 15360),
        (0, 0),
    ]


def test_of_cards_that_only_their_devices_report_nothing_is_free() -> None:
    """A node without gpu-count: boards show what a pod holds of its cards, and the scheduler, which
    reads no devices, gives nothing.
    """
    shared = Node("n", labels={"cgpu": "true"}, capacity={GPU_MEMORY: 30})
    found = account(
        shared,
        [placed(pod(), "n", {"main": [(0, 4)]})],
        [GpuReading("n", index, f"GPU-n-{index}") for index in range(2)],
    )
    assert [(card.units, card.used, card.free) for card in found.cards] == [(15, 4, 0), (15, 0, 0)]


def test_a_tenant_is_assigned_when_its_containers_have_the_card() -> None:
    assert (
        tenant_of(
            placed(
                pod(annotations={"ALIYUN_COM_GPU_MEM_ASSIGNED": "true"}), "n", {"main": [(0, 4)]}
            )
        ).state
        == "assigned"
    )
    assert tenant_of(placed(pod(), "n", {"main": [(0, 4)]})).state == "bound"
