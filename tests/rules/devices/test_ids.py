"""Device ids of cards, and the choice among them:
docs/spec/gpu-sharing.md#resources-and-device-ids,
docs/spec/gpu-sharing.md#units-and-the-proportional-grant, docs/spec/gpu-sharing.md#device-plugin,
docs/spec/gpu-sharing.md#allocation-of-the-right-container.
"""

from __future__ import annotations

import hashlib
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rules.devices.cards import t4, uuid

from fairlead.model.devices.gpu import CardMode, GpuSlot, Health
from fairlead.model.refusal import Refusal
from fairlead.model.resources import MemoryUnit
from fairlead.rules.devices.ids import ids_of, offered, preferred, token, unlistable, uuid_of

MEMORY, CORE, WHOLE = "aliyun.com/gpu-mem", "aliyun.com/gpu-core.percentage", "nvidia.com/gpu"


def test_ids_are_spelled_as_in_the_contract() -> None:
    card = t4()
    assert list(ids_of(MEMORY, card)) == [f"{card.uuid}-_-{number}" for number in range(14)]
    assert list(ids_of(CORE, card)) == [f"{card.uuid}-_-c{number}" for number in range(100)]
    assert list(ids_of(WHOLE, card)) == [card.uuid]
    assert list(ids_of("example.com/fpga", card)) == []


def test_no_id_is_longer_than_the_api_allows() -> None:
    large = t4(memory_mib=143150, units=143150)
    assert (
        max(len(each) for resource in (MEMORY, CORE, WHOLE) for each in ids_of(resource, large))
        <= 63
    )
    assert len(ids_of(MEMORY, t4(units=139))[138]) == 46


def test_an_h200_node_in_gib_has_1112_ids() -> None:
    assert len(offered(MEMORY, [t4(index, units=139) for index in range(8)])) == 1112


def test_lists_are_sorted_and_a_card_changes_health_whole() -> None:
    cards = [t4(1), t4(0, health=Health.UNHEALTHY, reason="XID 79"), t4(2, mode=CardMode.DRAINING)]
    reported = offered(MEMORY, cards)
    assert [each.id for each in reported] == sorted(each.id for each in reported)
    assert {(uuid_of(each.id), each.is_healthy) for each in reported} == {
        (uuid(0), False),
        (uuid(1), True),
        (uuid(2), False),
    }


def test_no_cards_are_an_empty_list() -> None:
    assert offered(MEMORY, []) == ()
    assert unlistable([], MemoryUnit.GIB) is None


def message_bytes(ids: list[str], health: str) -> int:
    """Size of the list in protobuf: Device{ID = 1, health = 2}, each in field 1 of the response;
    lengths below 128 take one byte.
    """
    return sum(2 + (2 + len(each)) + (2 + len(health)) for each in ids)


def test_a_list_is_reckoned_as_protobuf_has_it() -> None:
    """A healthy id without topology costs 59 bytes."""
    assert message_bytes([f"{uuid(0)}-_-100"], "Healthy") == 59
    names = [f"{uuid(0)}-_-{number}" for number in range(51_000)]
    sizes = list(accumulate(message_bytes([name], "Unhealthy") for name in names))
    most = sum(size <= 3 << 20 for size in sizes)
    for count, is_refused in ((most, False), (most + 1, True)):
        assert isinstance(unlistable([t4(units=count)], MemoryUnit.MIB), Refusal) is is_refused


def test_mib_units_of_large_cards_are_refused_with_the_unit_to_use() -> None:
    refusal = unlistable(
        [t4(index, memory_mib=143150, units=143150) for index in range(8)], MemoryUnit.MIB
    )
    message = (
        "8 GPUs in MiB: 1145200 device ids, a list of 69.0 MiB; at most 3 MiB are sent to a "
        "kubelet: use --memory-unit GiB"
    )
    assert refusal == Refusal(message)
    many = unlistable([t4(index, units=1000) for index in range(60)], MemoryUnit.GIB)
    assert many is not None
    assert many.reason.endswith("share fewer GPUs")
    assert unlistable([t4(index, units=139) for index in range(8)], MemoryUnit.GIB) is None
    assert unlistable([t4(index, units=15079) for index in range(3)], MemoryUnit.MIB) is None


def test_cards_that_cannot_be_distinguished_are_refused() -> None:
    assert unlistable([t4(0), t4(1, uuid=uuid(0))], MemoryUnit.GIB) == Refusal(
        f"GPU 0 and GPU 1 have the same UUID {uuid(0)}"
    )
    assert unlistable([GpuSlot(3)], MemoryUnit.GIB) == Refusal("GPU 3 has no UUID")


def test_a_token_is_made_of_the_resource_and_the_sorted_ids() -> None:
    ids = [f"{uuid(0)}-_-10", f"{uuid(0)}-_-2"]
    assert (
        token(MEMORY, reversed(ids))
        == token(MEMORY, ids)
        == hashlib.sha256(f"{MEMORY}\n{ids[0]}\n{ids[1]}".encode()).hexdigest()[:16]
    )
    assert token(CORE, ids) != token(MEMORY, ids)
    assert token(MEMORY, ids[:1]) != token(MEMORY, ids)
    assert token(MEMORY, ["a", "b"]) != token(MEMORY, ["ab"])


IDS = st.sets(
    st.builds(
        lambda card, number: f"GPU-{card}-_-{number}", st.sampled_from("abcd"), st.integers(0, 5)
    ),
    max_size=20,
)


@given(available=IDS, more=st.data())
def test_preferred_takes_exactly_this_number_from_as_few_cards_as_can_be(
    available: set[str], more: st.DataObject
) -> None:
    must = (
        more.draw(st.sets(st.sampled_from(sorted(available)), max_size=6)) if available else set()
    )
    size = more.draw(st.integers(len(must), len(available)))
    chosen = preferred(available, must, size)
    assert len(chosen) == len(set(chosen)) == size
    assert must <= set(chosen) <= available
    assert len({uuid_of(each) for each in chosen}) == fewest_cards(available, must, size)


def fewest_cards(available: set[str], must: set[str], size: int) -> int:
    """The smallest number of cards, found by trying every set of cards."""
    cards = sorted({uuid_of(each) for each in available})
    needed = {uuid_of(each) for each in must}
    tried = [
        {card for place, card in enumerate(cards) if bits >> place & 1}
        for bits in range(1 << len(cards))
    ]
    return min(
        len(some)
        for some in tried
        if needed <= some and sum(uuid_of(each) in some for each in available) >= size
    )


@pytest.mark.parametrize(
    ("available", "must", "size", "count"),
    [
        ((), (), 3, 0),
        (("a-_-0",), (), 3, 1),
        (("a-_-0",), ("b-_-0", "b-_-1"), 1, 1),
        (("a-_-0",), (), 0, 0),
        (("a-_-0",), (), -1, 0),
    ],
)
def test_preferred_never_fails(
    available: tuple[str, ...], must: tuple[str, ...], size: int, count: int
) -> None:
    assert len(preferred(available, must, size)) == count
