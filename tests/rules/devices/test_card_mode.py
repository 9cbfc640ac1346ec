"""Modes of cards, and the device lists that follow from them:
docs/spec/gpu-sharing.md#switching-a-node-between-shared-and-exclusive.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rules.devices.cards import t4, uuid

from fairlead.model.devices.gpu import CardMode, GpuSlot, Grant, Health
from fairlead.model.devices.kubelet import GivenShare, HeldDevices
from fairlead.model.pod import Container, Pod, PodPhase
from fairlead.rules.devices.card_mode import (
    CardHolders,
    CardPlan,
    card_holders,
    card_plan,
    is_foreign_plugin,
)

MEMORY, CORE, WHOLE = "aliyun.com/gpu-mem", "aliyun.com/gpu-core.percentage", "nvidia.com/gpu"
SHARE, WHOLLY = {"cgpu": "true"}, {"cgpu": "false"}
CARDS = [t4(0), t4(1)]


def counts(plan: CardPlan) -> dict[str, tuple[int, int]]:
    """Capacity and allocatable by resource, as a kubelet computes them from the list."""
    return {
        resource: (len(reported), sum(each.is_healthy for each in reported))
        for resource, reported in plan.lists.items()
    }


def modes(plan: CardPlan) -> list[str]:
    return [card.mode.value for card in plan.cards]


@pytest.mark.parametrize(
    ("labels", "is_shared"),
    [
        ({}, False),
        ({"cgpu": "true"}, True),
        ({"cgpu": "false", "ack.node.gpu.schedule": "cgpu"}, False),
        ({"ack.node.gpu.schedule": "share", "gpushare": "false"}, True),
        ({"gpushare": "true"}, True),
        ({"ack.node.gpu.schedule": "default", "gpushare": "true"}, False),
    ],
)
def test_an_idle_node_offers_one_resource_and_the_other_list_is_empty(
    labels: Mapping[str, str], is_shared: bool
) -> None:
    plan = card_plan(labels, CARDS, CardHolders())
    assert modes(plan) == ["shared" if is_shared else "exclusive"] * 2
    assert counts(plan) == (
        {MEMORY: (28, 28), CORE: (0, 0), WHOLE: (0, 0)}
        if is_shared
        else {MEMORY: (0, 0), CORE: (0, 0), WHOLE: (2, 2)}
    )


def test_core_is_offered_where_the_label_is_core_mem() -> None:
    assert counts(card_plan({"ack.node.gpu.schedule": "core_mem"}, CARDS, CardHolders()))[CORE] == (
        200,
        200,
    )


def test_a_card_that_is_held_whole_drains_and_its_old_id_stays_listed() -> None:
    plan = card_plan(SHARE, CARDS, CardHolders(whole=frozenset({uuid(1)})))
    assert modes(plan) == ["shared", "draining"]
    assert counts(plan) == {MEMORY: (14, 14), CORE: (0, 0), WHOLE: (1, 0)}
    assert plan.lists[WHOLE][0].id == uuid(1)
    assert plan.cards[1].health == Health.HEALTHY, "draining is no fault"


def test_a_card_that_is_held_in_parts_drains_and_its_old_ids_stay_listed() -> None:
    plan = card_plan(WHOLLY, CARDS, CardHolders(parts=frozenset({uuid(0)})), is_core_held=True)
    assert modes(plan) == ["draining", "exclusive"]
    assert counts(plan) == {MEMORY: (14, 0), CORE: (100, 0), WHOLE: (1, 1)}


def test_core_ids_in_use_stay_listed_while_cards_drain_and_are_offered_by_label_alone() -> None:
    in_parts = CardHolders(parts=frozenset({uuid(0)}))
    assert counts(card_plan(WHOLLY, CARDS, in_parts))[CORE] == (0, 0)
    assert counts(card_plan(SHARE, CARDS, in_parts, is_core_held=True))[CORE] == (0, 0)
    assert counts(card_plan({**WHOLLY, "ack.node.gpu.schedule": "core_mem"}, CARDS, in_parts))[
        CORE
    ] == (100, 0)


def test_a_holder_on_an_unknown_card_keeps_all_of_them_from_being_given_whole() -> None:
    assert modes(card_plan(WHOLLY, CARDS, CardHolders(is_hidden=True))) == ["draining", "draining"]
    assert modes(card_plan(SHARE, CARDS, CardHolders(is_hidden=True))) == ["shared", "shared"]


def test_a_foreign_plugin_leaves_no_units_and_a_condition() -> None:
    plan = card_plan(SHARE, CARDS, CardHolders(), is_foreign=True)
    assert counts(plan) == {MEMORY: (0, 0), CORE: (0, 0)}, "nvidia.com/gpu is the other plugin's"
    assert "shared" not in modes(plan)
    assert plan.condition is not None
    assert (plan.condition.type, plan.condition.status, plan.condition.reason) == (
        "GPUShareReady",
        "False",
        "ForeignDevicePlugin",
    )
    assert "nvidia.com/gpu.deploy.device-plugin=false" in plan.condition.message


def test_beside_a_foreign_plugin_an_exclusive_node_is_in_order() -> None:
    assert card_plan(WHOLLY, CARDS, CardHolders(), is_foreign=True).condition is None
    assert (
        card_plan(WHOLLY, CARDS, CardHolders(parts=frozenset({uuid(0)})), is_foreign=True).condition
        is not None
    )


@pytest.mark.parametrize(
    ("cards", "fault", "words"),
    [([], "", "the driver shows no GPU"), (CARDS, "two are one", "two are one")],
)
def test_cards_that_cannot_be_listed_are_empty_lists_and_a_condition(
    cards: list[GpuSlot], fault: str, words: str
) -> None:
    plan = card_plan(SHARE, cards, CardHolders(), fault=fault)
    assert counts(plan) == {MEMORY: (0, 0), CORE: (0, 0), WHOLE: (0, 0)}
    assert plan.condition is not None
    assert (plan.condition.status, plan.condition.reason, plan.condition.message) == (
        "False",
        "UnusableGPUs",
        words,
    )
    assert counts(card_plan(WHOLLY, cards, CardHolders(), fault=fault)) == counts(plan)
    assert card_plan(WHOLLY, cards, CardHolders(), fault=fault).condition is None


def test_a_shared_node_reports_that_it_is_ready() -> None:
    condition = card_plan(SHARE, CARDS, CardHolders()).condition
    assert condition is not None
    assert condition.status == "True"
    assert card_plan(WHOLLY, CARDS, CardHolders()).condition is None


@pytest.mark.parametrize(
    ("sockets", "allocatable", "served", "seconds", "is_foreign"),
    [
        (["fairlead-gpu.sock", "kubelet.sock"], 2, 2, 0.0, False),
        (["nvidia-gpu.sock"], 0, 0, 0.0, True),
        (["nvidia.sock", "nvidia-gpu.sock.tmp"], 0, 0, 300.0, False),
        ([], 2, 0, 5.0, False),
        ([], 2, 0, 90.0, True),
        ([], 0, 2, 90.0, False),
    ],
)
def test_a_foreign_plugin_is_known_by_its_socket_or_by_devices_that_are_not_fairleads(
    sockets: list[str], allocatable: int, served: int, seconds: float, is_foreign: bool
) -> None:
    assert is_foreign_plugin(sockets, allocatable, served, seconds) is is_foreign


def pod(name: str, grants: Mapping[str, tuple[Grant, ...]] | None = None, **more: object) -> Pod:
    return Pod(
        "ns",
        name,
        **{
            "uid": f"uid-{name}",
            "node": "n",
            "containers": (Container("c"),),
            "grants": grants or {},
            **more,
        },
    )  # type: ignore[arg-type]


def whole(name: str, index: int, **more: str) -> HeldDevices:
    return HeldDevices(WHOLE, (uuid(index),), "c", **({"namespace": "ns", "pod": name} | more))


def given_before(name: str, card: int) -> GivenShare:
    return GivenShare("ns", name, f"uid-{name}", "c", Grant(uuid(card), card, 4, 4308), "token")


def test_whole_cards_are_held_by_the_pods_that_the_kubelet_names() -> None:
    assert card_holders(CARDS, [whole("p", 1)], [pod("p")], []) == CardHolders(
        whole=frozenset({uuid(1)})
    )
    assert card_holders(CARDS, [whole("p", 1)], [], []).whole == {uuid(1)}, (
        "its object is gone, and its container is not"
    )


def test_a_pod_that_is_over_holds_nothing_however_long_the_kubelet_lists_it() -> None:
    over = pod("p", phase=PodPhase.SUCCEEDED, grants={"c": (Grant(uuid(0), 0, 4, 4308),)})
    assert card_holders(CARDS, [whole("p", 1)], [over], []) == CardHolders()
    dead = HeldDevices(WHOLE, (uuid(1),), "c", pod_uid="uid-dead")
    assert card_holders(CARDS, [dead], [], []) == CardHolders(), "the checkpoint keeps dead pods"


def test_an_init_container_with_a_whole_card_is_in_the_checkpoint_alone() -> None:
    assert card_holders(
        CARDS, [HeldDevices(WHOLE, (uuid(1),), "i", pod_uid="uid-p")], [pod("p")], []
    ).whole == {uuid(1)}


def test_the_ids_of_shared_memory_do_not_show_which_card_is_held() -> None:
    ids = tuple(f"{uuid(0)}-_-{number}" for number in range(4))
    granted = pod("p", {"c": (Grant(uuid(1), 1, 4, 4308),)}, deleted_at=5.0)
    held = [HeldDevices(MEMORY, ids, "c", "ns", "p")]
    assert card_holders(CARDS, held, [granted], []) == CardHolders(parts=frozenset({uuid(1)}))
    assert card_holders(CARDS, held, [pod("p", {"c": (Grant("", 1, 4),)})], []).parts == {
        uuid(1)
    }, "the reference names an index"
    assert card_holders(CARDS, held, [pod("p")], [given_before("p", 1)]) == CardHolders(
        parts=frozenset({uuid(1)})
    ), "its annotation was lost"
    assert card_holders(CARDS, held, [pod("p")], []) == CardHolders(is_hidden=True)


def test_what_is_no_share_of_a_card_of_this_node_is_passed_over() -> None:
    topology = pod("p", {"": (Grant("", 0, 0),)})
    assert (
        card_holders(
            CARDS, [HeldDevices("example.com/fpga", ("f",), "c", "ns", "p")], [topology], []
        )
        == CardHolders()
    )
    assert card_holders(CARDS, [], [pod("p", {"c": (Grant(uuid(1), 0, 4, 4308),)})], []).parts == {
        uuid(1)
    }, "the UUID before the index"


def test_a_pod_whose_object_is_gone_holds_what_the_agent_wrote_down() -> None:
    held = [HeldDevices(MEMORY, (f"{uuid(0)}-_-0",), "c", "ns", "gone")]
    assert card_holders(CARDS, held, [], [given_before("gone", 1)]) == CardHolders(
        parts=frozenset({uuid(1)})
    )
    assert card_holders(CARDS, held, [], []) == CardHolders(is_hidden=True)


UUIDS = st.frozensets(st.sampled_from([uuid(0), uuid(1)]))


@given(
    is_shared=st.booleans(),
    is_foreign=st.booleans(),
    holders=st.builds(CardHolders, UUIDS, UUIDS, st.booleans()),
)
def test_no_card_is_ever_offered_both_ways_or_beside_a_holder_of_the_other_mode(
    is_shared: bool, is_foreign: bool, holders: CardHolders
) -> None:
    plan = card_plan(
        SHARE if is_shared else WHOLLY, CARDS, holders, is_foreign=is_foreign, is_core_held=True
    )
    in_parts = {each.id.partition("-_-")[0] for each in plan.lists[MEMORY] if each.is_healthy}
    in_whole = {each.id for each in plan.lists.get(WHOLE, ()) if each.is_healthy}
    assert not in_parts & in_whole
    assert not in_parts & holders.whole
    assert not in_whole & holders.parts
    for card in plan.cards:
        assert (card.uuid in in_parts) is (card.mode == CardMode.SHARED)
