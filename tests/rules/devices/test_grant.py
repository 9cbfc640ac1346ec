"""What a container is granted, and the sentences of a refusal:
docs/spec/gpu-sharing.md#units-and-the-proportional-grant, docs/spec/gpu-sharing.md#need-of-a-pod,
docs/spec/gpu-sharing.md#allocation-of-the-right-container.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given as given_any
from hypothesis import settings
from hypothesis import strategies as st
from tests.rules.devices.cards import T4_MIB, t4, uuid

from fairlead.model.devices.gpu import CardMode, Grant, Health
from fairlead.model.devices.granted import ContainerGrant, DeviceRefusal
from fairlead.model.devices.kubelet import HeldDevices
from fairlead.model.pod import Container, Pod, PodPhase
from fairlead.rules.devices.container_edits import container_limits, given_shares
from fairlead.rules.devices.grant import (
    as_remembered,
    foreign_ids,
    granted,
    guarded_grant,
    otherwise_answered,
    whole_cards,
)
from fairlead.rules.devices.ids import token
from fairlead.rules.devices.owner import IdsOwner

MEMORY, CORE = "aliyun.com/gpu-mem", "aliyun.com/gpu-core.percentage"
CARDS = [t4(0), t4(1)]


def ids(count: int, card: int = 0) -> list[str]:
    return [f"{uuid(card)}-_-{number}" for number in range(count)]


def part(name: str = "c", units: int = 4, core: int = 0, **more: Any) -> Container:
    return Container(name, limits={MEMORY: units} | ({CORE: core} if core else {}), **more)


def pod(*given: Grant, name: str = "p", **more: Any) -> Pod:
    made = {
        "uid": f"uid-{name}",
        "node": "n",
        "containers": (part(),),
        "grants": {"c": given} if given else {},
    }
    return Pod("ns", name, **{**made, **more})


def share(
    index: int = 0, units: int = 4, mib: int | None = 4308, core: int = 0, **more: Any
) -> Grant:
    return Grant(
        **{
            "uuid": uuid(index),
            "index": index,
            "units": units,
            "memory_mib": mib,
            "core_percent": core,
            **more,
        }
    )


def given(
    asker: Pod,
    containers: tuple[str, ...] = ("c",),
    count: int = 4,
    cards: Any = CARDS,
    **more: Any,
) -> ContainerGrant:
    found = granted(ids(count), IdsOwner(asker, containers), cards, **more)
    assert isinstance(found, ContainerGrant), found
    return found


def refused(
    asker: Pod,
    containers: tuple[str, ...] = ("c",),
    count: int = 4,
    cards: Any = CARDS,
    **more: Any,
) -> str:
    found = granted(ids(count), IdsOwner(asker, containers), cards, **more)
    assert isinstance(found, DeviceRefusal), found
    assert not found.is_final, "PreStartContainer is asked again"
    return f"{found.code}: {found.reason}"


def test_the_granted_card_counts_and_not_the_one_in_the_ids() -> None:
    found = given(pod(share(1)))
    assert found.cards == (Grant(uuid(1), 1, 4, 4308, 0),)
    assert (found.namespace, found.pod, found.pod_uid, found.mirror_uid, found.containers) == (
        "ns",
        "p",
        "uid-p",
        "",
        ("c",),
    )
    assert (found.token, found.units, found.pod_units) == (token(MEMORY, ids(4)), 4, 4)


def test_a_grant_over_two_cards_is_shown_by_index() -> None:
    assert given(pod(share(1, 2, 2154), share(0, 2, 2154))).cards == (
        Grant(uuid(0), 0, 2, 2154),
        Grant(uuid(1), 1, 2, 2154),
    )


def test_a_lower_limit_that_was_wished_is_the_limit_and_a_wish_of_today_is_none() -> None:
    assert given(pod(share(mib=3500))).cards[0].memory_mib == 3500
    assert given(pod(share(mib=4308), memory_limits_mib={"c": 100})).cards[0].memory_mib == 4308


def test_the_reference_names_an_index_and_its_mib_follow_from_the_units() -> None:
    """The reference driver's pods name only an index, so their MiB follow from the units: with 14
    units of 15079 MiB, 4 units are 4308 MiB.
    """
    asker = pod(Grant("", 1, 4), init_containers=(part("i"),))
    assert given(asker).cards == (Grant(uuid(1), 1, 4, 4308),)
    assert given(asker, ("i",)).cards == (Grant(uuid(1), 1, 4, 4308),), (
        "it writes nothing of init containers"
    )
    cored = pod(Grant("", 1, 4), containers=(part(core=30),))
    assert given(cored).cards[0].core_percent == 30, "nor of core percent"
    assert "placement grants 4 units, container limit is 5" in refused(
        pod(Grant("", 1, 4), containers=(part(units=5),))
    )


def test_no_placement_is_reported_in_the_contracts_words() -> None:
    words = (
        "FAILED_PRECONDITION: pod ns/p container c has no GPU placement; it must be scheduled by "
        "fairlead-scheduler"
    )
    assert refused(pod()) == words
    assert refused(pod(grants={"other": (share(),)})) == words
    assert "container i has no GPU placement" in refused(
        pod(share(), init_containers=(part("i"),)), ("i",)
    )


def test_units_are_those_of_the_limit_in_the_contracts_words() -> None:
    assert refused(pod(share(units=6, mib=6462))) == (
        "INVALID_ARGUMENT: placement grants 6 units, container limit is 4"
    )
    assert refused(pod(share(units=4), share(1, units=0, mib=0))) == (
        f"INVALID_ARGUMENT: placement grants no units of GPU {uuid(1)}"
    )
    assert refused(pod(share()), count=3) == (
        "INVALID_ARGUMENT: the kubelet gave 3 devices, container limit is 4"
    )


def test_an_unhealthy_card_is_reported_as_in_the_contract_and_an_overridden_one_goes_on() -> None:
    ill = [t4(0, health=Health.UNHEALTHY, reason="XID 79"), t4(1)]
    assert refused(pod(share()), cards=ill) == f"UNAVAILABLE: GPU {uuid(0)} is Unhealthy (XID 79)"
    assert given(pod(share(1)), cards=ill).cards[0].index == 1
    assert given(
        pod(share()), cards=[t4(0, health=Health.UNHEALTHY, reason="taken out by an operator")]
    )


@pytest.mark.parametrize(
    ("grant", "words"),
    [
        (share(mib=4309), f"placement grants 4309 MiB, 4 units of GPU {uuid(0)} are 4308 MiB"),
        (share(mib=0), f"placement grants 0 MiB, 4 units of GPU {uuid(0)} are 4308 MiB"),
        (
            share(uuid="GPU-elsewhere"),
            "placement names GPU GPU-elsewhere, which is not on this node",
        ),
        (share(uuid=uuid(2), index=2), f"the driver does not report the memory of GPU {uuid(2)}"),
        (Grant("", 7, 4), "placement names GPU 7, which is not on this node"),
        (
            share(index=1, uuid=uuid(0)),
            f"placement names GPU {uuid(0)} as GPU 1, on this node it is GPU 0",
        ),
        (share(core=30), "placement grants 30 core percent, container limit is 0"),
    ],
)
def test_a_placement_that_is_not_of_these_cards_gives_nothing(grant: Grant, words: str) -> None:
    assert refused(pod(grant), cards=[*CARDS, t4(2, memory_mib=None)]).endswith(f": {words}")


def test_a_placement_names_a_card_once_and_no_more_units_than_it_has() -> None:
    assert "twice" in refused(pod(share(units=2, mib=2154), share(units=2, mib=2154)))
    assert (
        given(pod(share(units=14, mib=T4_MIB), containers=(part(units=14),)), count=14)
        .cards[0]
        .memory_mib
        == 15079
    )
    assert given(pod(share(mib=1))).cards[0].memory_mib == 1
    many = pod(share(units=20, mib=15079), containers=(part(units=20),))
    assert refused(many, count=20) == (
        f"INVALID_ARGUMENT: placement grants 20 units, GPU {uuid(0)} has 14"
    )


def test_core_percent_is_that_of_the_limit() -> None:
    assert given(pod(share(core=30), containers=(part(core=30),))).cards[0].core_percent == 30
    assert "placement grants 20 core percent, container limit is 30" in refused(
        pod(share(core=20), containers=(part(core=30),))
    )


def test_a_card_in_exclusive_use_is_not_shared() -> None:
    assert refused(pod(share()), cards=[t4(0, mode=CardMode.EXCLUSIVE)]) == (
        f"UNAVAILABLE: GPU {uuid(0)} is in exclusive use"
    )
    assert "exclusive use" in refused(
        pod(share()), cards=[t4(0, mode=CardMode.DRAINING)], whole={uuid(0)}
    )
    assert given(pod(share()), cards=[t4(0, mode=CardMode.DRAINING)]), (
        "of the old mode: it is one of those who hold it"
    )


def test_of_an_init_and_an_app_container_with_the_same_ids_the_smaller_limit_holds() -> None:
    asker = pod(grants={"c": (share(mib=4308, core=30),), "i": (share(mib=3500, core=50),)})
    asker = Pod(
        "ns",
        "p",
        containers=(part(core=30),),
        init_containers=(part("i", core=50),),
        grants=asker.grants,
    )
    assert given(asker, ("c", "i")).cards == (Grant(uuid(0), 0, 4, 3500, 30),)


def test_equal_ids_on_other_cards_are_nobodys() -> None:
    asker = pod(grants={"c": (share(0),), "i": (share(1),)}, init_containers=(part("i"),))
    assert refused(asker, ("c", "i")) == (
        "UNAVAILABLE: containers c and i have the same devices and other GPUs"
    )


def test_a_static_pod_has_the_uid_of_the_kubelet_and_its_mirrors() -> None:
    found = given(pod(share(), annotations={"kubernetes.io/config.mirror": "static"}))
    assert (found.pod_uid, found.mirror_uid) == ("static", "uid-p")


def test_ids_of_no_card_of_the_node_are_refused_for_good() -> None:
    strange = foreign_ids([*ids(2), "GPU-x-_-3"], CARDS)
    assert strange is not None
    assert (strange.code, strange.reason, strange.is_final) == (
        "INVALID_ARGUMENT",
        "device GPU-x-_-3 is of no GPU of this node",
        True,
    )
    assert foreign_ids(ids(3), CARDS) is None
    for answer in (
        granted(["GPU-x-_-3"], IdsOwner(pod(share()), ("c",)), CARDS),
        guarded_grant(["GPU-x-_-3"], [], [], CARDS),
    ):
        assert answer == strange


def test_whole_cards_are_their_ids() -> None:
    cards = [t4(1, mode=CardMode.EXCLUSIVE), t4(0, mode=CardMode.EXCLUSIVE)]
    assert whole_cards([uuid(1), uuid(0)], cards) == (cards[1], cards[0])


@pytest.mark.parametrize(
    ("card", "words"),
    [
        (t4(mode=CardMode.DRAINING), f"GPU {uuid(0)} is draining from shared use"),
        (t4(mode=CardMode.SHARED), f"GPU {uuid(0)} is shared"),
        (
            t4(mode=CardMode.EXCLUSIVE, health=Health.UNHEALTHY, reason="XID 48"),
            f"GPU {uuid(0)} is Unhealthy (XID 48)",
        ),
        (
            t4(mode=CardMode.EXCLUSIVE, health=Health.UNHEALTHY, reason="taken out by an operator"),
            f"GPU {uuid(0)} is Unhealthy (taken out by an operator)",
        ),
        (t4(1, mode=CardMode.EXCLUSIVE), f"device {uuid(0)} is of no GPU of this node"),
    ],
)
def test_a_card_is_given_whole_only_in_that_mode(card: Any, words: str) -> None:
    found = whole_cards([uuid(0)], [card])
    assert isinstance(found, DeviceRefusal)
    assert found.reason == words


def guarded(*pods: Pod, held: Any = (), count: int = 4) -> ContainerGrant | DeviceRefusal:
    return guarded_grant(ids(count), pods, held, CARDS)


def test_guarded_containers_of_one_size_on_one_card_are_served_without_a_name() -> None:
    found = guarded(
        pod(share(1), name="p"),
        pod(share(1), name="q"),
        pod(share(0, 2, 2154), name="r", containers=(part(units=2),)),
    )
    assert isinstance(found, ContainerGrant)
    assert (found.cards, found.pod, found.containers, found.pod_units) == (
        (Grant(uuid(1), 1, 4, 4308),),
        "",
        (),
        4,
    )


@pytest.mark.parametrize("other", [share(0), share(1, mib=3500)], ids=["another card", "other MiB"])
def test_guarded_containers_of_one_size_that_differ_are_not_guessed(other: Grant) -> None:
    found = guarded(pod(share(1), name="p"), pod(other, name="q"))
    assert isinstance(found, DeviceRefusal)
    assert (found.is_final, found.reason) == (
        False,
        "containers of 4 units wait for different GPUs or memory: ns/p/c, ns/q/c",
    )


def test_guarded_pods_that_have_devices_already_or_leave_do_not_count() -> None:
    has = HeldDevices(MEMORY, tuple(ids(4)), "c", pod_uid="uid-q")
    gone = [
        pod(share(0), name="r", deleted_at=1.0),
        pod(share(0), name="s", phase=PodPhase.FAILED),
        pod(share(0), name="t", node=""),
    ]
    found = guarded(pod(share(1), name="p"), pod(share(0), name="q"), *gone, held=[has])
    assert isinstance(found, ContainerGrant)
    assert found.cards[0].index == 1


def test_guarded_of_two_containers_of_a_pod_each_is_served_as_its_turn_comes() -> None:
    both = pod(grants={"a": (share(0),), "b": (share(1),)}, containers=(part("a"), part("b")))
    assert isinstance(guarded(both), DeviceRefusal)
    core = HeldDevices(CORE, (f"{uuid(0)}-_-c0",), "b", pod_uid="uid-p")
    found = guarded(both, held=[HeldDevices(MEMORY, tuple(ids(4)), "a", pod_uid="uid-p"), core])
    assert isinstance(found, ContainerGrant)
    assert (found.cards[0].index, found.pod_units) == (1, 8)


def test_guarded_a_container_without_placement_may_be_the_one_that_asks() -> None:
    found = guarded(pod(share(1), name="p"), pod(name="q"))
    assert isinstance(found, DeviceRefusal)
    assert "pod ns/q container c has no GPU placement" in found.reason
    unknown = guarded()
    assert isinstance(unknown, DeviceRefusal)
    assert not unknown.is_final
    assert unknown.reason == "no container of this node waits for 4 units of aliyun.com/gpu-mem"


def test_guarded_a_container_starts_only_with_what_was_answered() -> None:
    found_now = guarded(pod(share(1)))
    assert isinstance(found_now, ContainerGrant)
    answered = container_limits(found_now, {}).cards
    assert otherwise_answered(given(pod(share(1, core=0))), answered) is None
    for other, reported in (
        (share(0), f"4308 MiB of GPU {uuid(0)}"),
        (share(1, mib=3500), f"3500 MiB of GPU {uuid(1)}"),
    ):
        found = otherwise_answered(given(pod(other)), answered)
        assert found is not None
        assert found.is_final
        assert found.reason == (
            f"the kubelet was given 4308 MiB of GPU {uuid(1)}, the pod's placement is {reported}; "
            "delete the pod"
        )


def test_a_container_keeps_its_card_when_its_annotation_is_lost() -> None:
    before = given_shares(given(pod(share(1))))
    assert given(as_remembered(pod(), before)).cards == (share(1),)
    assert "no GPU placement" in refused(as_remembered(pod(uid="anew"), before)), (
        "what its name had before is not its own"
    )
    halves = pod(share(0, 2, 2154), share(1, 2, 2154))
    assert as_remembered(pod(), given_shares(given(halves))).grants == halves.grants
    assert given(as_remembered(pod(share(0)), before)).cards[0].index == 0, (
        "the annotation's value is what counts"
    )
    assert "no GPU placement" in refused(as_remembered(pod(), []))


@settings(deadline=None)
@given_any(
    st.lists(
        st.tuples(st.integers(1, 14), st.integers(0, 16000), st.booleans()), min_size=1, max_size=14
    )
)
def test_what_is_granted_of_a_card_is_never_more_than_it_has(
    asked: list[tuple[int, int, bool]],
) -> None:
    units_left, total_mib = 14, 0
    for units, mib, is_reported in asked:
        if units > units_left:
            continue
        asker = pod(
            share(units=units, mib=mib if is_reported else None), containers=(part(units=units),)
        )
        found = granted(ids(units), IdsOwner(asker, ("c",)), CARDS)
        exact = Fraction(15079 * units, 14)
        assert isinstance(found, ContainerGrant) is (not is_reported or 0 < mib <= exact)
        if isinstance(found, ContainerGrant):
            units_left -= units
            total_mib += found.cards[0].memory_mib or 0
            assert is_reported or 0 <= exact - (found.cards[0].memory_mib or 0) < 1
    assert total_mib <= 15079


def test_guarded_the_smallest_share_of_compute_time_is_given_and_no_total_of_some_only() -> None:
    small = pod(share(1, core=20), name="p", containers=(part(core=20),))
    large = pod(
        grants={"c": (share(1, core=50),)}, name="q", containers=(part(core=50), part("d", 2))
    )
    found = guarded(small, large)
    assert isinstance(found, ContainerGrant)
    assert (found.cards[0].core_percent, found.pod_units) == (20, None)
