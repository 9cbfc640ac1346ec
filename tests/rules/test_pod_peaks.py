"""The most that a pod holds at any time, for any containers: request, placement, booking and
reading back agree, and never exceed a card.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rules.held import asked_at_most, fits_alone, held_at_most
from tests.rules.sharing import cards, container, ledger, node, placed, pod

from fairlead.model.devices.gpu import Grant
from fairlead.model.pod import Container, Pod
from fairlead.model.refusal import Refusal
from fairlead.model.resources import GPU_CORE, GPU_MEMORY
from fairlead.rules.holding.account import CardAccount
from fairlead.rules.holding.booked import booked_grants
from fairlead.rules.holding.need import gpu_need
from fairlead.rules.sharing.ledger import Ledger
from fairlead.wire.gpus.allocation import parse_grants, render_bind

SPLIT = {"fairlead.io/gpu-split": "per-container"}


def side(name: str, units: int, core: int = 0) -> Container:
    return container(name, units, core, restartable=True)


def pod_of(*init: Container, app: int = 2, **more: Any) -> Pod:
    return pod(containers=[container("app", app)], init_containers=init, **more)


# --- worked examples ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asker", "need"),
    [
        pytest.param(
            pod_of(side("s", 2), container("i", 4)),
            (6, 0),
            id="the contract's first: beside the sidecar before it",
        ),
        pytest.param(
            pod_of(container("i", 4), side("s", 2)),
            (4, 0),
            id="before the sidecar: they never run at once",
        ),
        pytest.param(
            pod_of(container("i", 8, 10), container("j", 2, 90)),
            (8, 90),
            id="the contract's second: each by itself",
        ),
        pytest.param(
            pod_of(side("s", 1), container("i", 3), side("t", 1), container("j", 3)),
            (5, 0),
            id="two sidecars, two inits",
        ),
        pytest.param(
            pod_of(side("s", 1, 50), container("i", 3, 40)),
            (4, 90),
            id="core percent beside the sidecar's",
        ),
        pytest.param(pod_of(side("s", 4), container("i", 1)), (6, 0), id="the end is the most"),
        pytest.param(
            pod_of(side("s", 4), container("i", 8), app=4, cards=2),
            (6, 0),
            id="on each of two cards",
        ),
    ],
)
def test_the_most_at_one_instant_is_asked_and_booked(asker: Pod, need: tuple[int, int]) -> None:
    asked = gpu_need(asker)
    assert (asked.units, asked.core_percent, asked.fault) == (*need, "")
    made = ledger(node(core=True))
    assert not isinstance(made.reserve(asker, "n"), Refusal)
    assert {(card.used, card.core_used) for card in made.nodes["n"].cards if card.used} == {need}


def test_beside_a_pod_of_eleven_the_sidecars_room_is_not_sold() -> None:
    """Regression: 17 of 15 units were sold."""
    made = ledger(node(units=(15,)))
    made.reserve(pod("eleven", 11), "n")
    why = "Insufficient aliyun.com/gpu-mem on one GPU: need 6 GiB, largest free 4 GiB"
    assert made.reserve(pod_of(side("s", 2), container("i", 4)), "n") == Refusal(why)


def test_a_sidecar_on_a_card_of_its_own_adds_nothing_to_the_init_containers_card() -> None:
    made = ledger(node(units=(6, 15)), used={("n", 1): 1})
    asker = pod(
        containers=[container("app", 2)],
        init_containers=(side("s", 8), container("i", 6)),
        annotations=SPLIT,
    )
    grants = made.reserve(asker, "n")
    assert not isinstance(grants, Refusal)
    assert cards(grants) == {"app": [(0, 2)], "s": [(1, 8)], "i": [(0, 6)]}
    assert [card.used for card in made.nodes["n"].cards] == [6, 9]


def test_containers_of_one_pod_on_one_card_take_only_what_their_peak_grows_by() -> None:
    """Alone, `app` needs 8 while `i` runs; `s`, which comes later, fits into the room that `i`
    leaves.
    """
    made = ledger(node(units=(8,)))
    asker = pod(
        containers=[container("app", 2)],
        init_containers=(container("i", 8), side("s", 3)),
        annotations=SPLIT,
    )
    assert not isinstance(made.reserve(asker, "n"), Refusal)
    assert [card.used for card in made.nodes["n"].cards] == [8]


def test_what_is_booked_beyond_the_end_stands_under_the_init_container_that_holds_most() -> None:
    made = ledger(node(core=True))
    asker = pod_of(side("s", 1), container("i", 8, 10), container("j", 2, 90))
    made.reserve(asker, "n")
    booked = made.tenants[asker.uid].booked
    assert {
        name: [(each.units, each.core_percent) for each in given] for name, given in booked.items()
    } == {
        "app": [(2, 0)],
        "s": [(1, 0)],
        "i": [(6, 0)],
        "j": [(0, 90)],
    }
    mib = sum(each.memory_mib or 0 for given in booked.values() for each in given)
    assert mib <= made.nodes["n"].cards[0].memory_mib


def test_init_containers_are_not_in_the_reference_and_hold_the_first_containers_card() -> None:
    """The reference driver writes only `spec.containers`, and no core percent."""
    asker = pod(
        containers=[container("app", 2, 20)],
        init_containers=(side("s", 2, 5), container("i", 4, 30)),
        node="n",
    )
    for notes in (
        {"scheduler.framework.gpushare.allocation": '{"0":{"1":2}}'},
        {"ALIYUN_COM_GPU_MEM_IDX": "1"},
    ):
        made = ledger(node(core=True))
        made.set_pod(
            msgspec.structs.replace(
                asker, annotations=notes, grants=parse_grants(notes, asker.containers)
            )
        )
        assert [(card.used, card.core_used) for card in made.nodes["n"].cards] == [(0, 0), (6, 35)]


# --- any pod, any node ----------------------------------------------------------------------------


@st.composite
def pods(draw: st.DrawFn, name: str = "p") -> Pod:
    """Pods with up to three containers and four init containers in any order, together on one card,
    or each on a card of its own.
    """
    on = draw(st.sampled_from([1, 1, 2]))

    def part(title: str, least: int, restartable: bool) -> Container:
        units = draw(st.integers(least, 6)) * on
        return container(
            title,
            units,
            draw(st.sampled_from([0, 0, 10, 30, 60])) if units else 0,
            restartable=restartable,
        )

    apps = [
        part(f"a{number}", number == 0, restartable=False)
        for number in range(draw(st.integers(1, 3)))
    ]
    apps = draw(st.permutations(apps))
    inits = [
        part(f"i{number}", 0, restartable=draw(st.booleans()))
        for number in range(draw(st.integers(0, 4)))
    ]
    notes = draw(st.sampled_from([{}, {}, SPLIT, {"fairlead.io/gpu-placement": "spread"}]))
    return pod(name, cards=on, containers=apps, init_containers=tuple(inits), annotations=notes)


@st.composite
def crowds(draw: st.DrawFn) -> list[Pod]:
    return [draw(pods(f"p{number}")) for number in range(draw(st.integers(1, 6)))]


SIZES = st.lists(st.integers(4, 15), min_size=1, max_size=3)


def free_of(held: list[CardAccount], taken: dict[str, tuple[int, int]]) -> list[tuple[int, int]]:
    sums = [taken.get(card.uuid, (0, 0)) for card in held]
    return [
        (card.units - units, 100 - core) for card, (units, core) in zip(held, sums, strict=True)
    ]


@given(SIZES, crowds())
def test_whatever_is_placed_holds_what_its_life_holds_and_no_card_is_sold_twice(
    sizes: list[int], crowd: list[Pod]
) -> None:
    made, again, taken = (
        ledger(node("n", sizes, core=True)),
        ledger(node("n", sizes, core=True)),
        {},
    )
    account = made.nodes["n"]
    for asker in crowd:
        on = int(asker.labels.get("aliyun.com/gpu-count", "1"))
        need = (asked_at_most(asker, GPU_MEMORY) // on, asked_at_most(asker, GPU_CORE) // on)
        would = fits_alone(free_of(account.cards, taken), need, on)
        grants = made.reserve(asker, "n")
        if isinstance(grants, Refusal):
            assert not would or (asker.annotations == SPLIT and len(gpu_need(asker).running) > 1), (
                grants
            )
            continue
        assert would or asker.annotations == SPLIT
        where = {name: [each.uuid for each in given] for name, given in grants.items()}
        assert all(len(set(each)) == on for each in where.values())
        first = next(part.name for part in asker.containers if GPU_MEMORY in part.limits)
        for part in asker.init_containers:
            assert part.name not in where or part.restartable or where[part.name] == where[first]
        assert asker.annotations == SPLIT or len({tuple(each) for each in where.values()}) == 1
        for uuid, (units, core) in held_at_most(asker, grants).items():
            before = taken.get(uuid, (0, 0))
            taken[uuid] = (before[0] + units, before[1] + core)
        notes = render_bind(asker, grants, 0, 0.0)
        again.set_pod(
            msgspec.structs.replace(
                asker, node="n", annotations=notes, grants=parse_grants(notes, asker.containers)
            )
        )
    for made_or_read in (made, again):
        for card in made_or_read.nodes["n"].cards:
            assert (card.used, card.core_used) == taken.get(card.uuid, (0, 0))
            assert card.used <= card.units
            assert card.core_used <= 100


@given(SIZES, pods())
def test_a_split_pod_finds_room_on_an_empty_node_where_its_parts_do_else_it_gets_numbers(
    sizes: list[int], asker: Pod
) -> None:
    no = ledger(node("n", sizes, core=True)).verdict_on("n", asker)
    assert no is None or no.reason.startswith(("need ", "Insufficient "))


@given(SIZES, pods(), st.data())
def test_a_grant_is_usable_only_if_every_container_has_its_limits(
    sizes: list[int], asker: Pod, data: st.DataObject
) -> None:
    grants = ledger(node("n", [15, 15, 15], core=True)).reserve(asker, "n")
    if isinstance(grants, Refusal):
        return
    name = data.draw(st.sampled_from(sorted(grants)))
    first, *rest = grants[name]
    spoiled = data.draw(
        st.sampled_from(
            [
                (msgspec.structs.replace(first, units=first.units + 1), *rest),
                (msgspec.structs.replace(first, units=first.units - 1), *rest),
                (msgspec.structs.replace(first, units=0), *rest),
                (msgspec.structs.replace(first, core_percent=first.core_percent + 5), *rest),
                (msgspec.structs.replace(first, core_percent=first.core_percent - 1000), *rest),
                (first, *rest, Grant("GPU-n-0", 0, 0)),
                (first, *rest, Grant("GPU-n-0", 0, 1), Grant("GPU-n-0", 0, -1)),
                (),
                None,
            ]
        )
    )
    changed = {
        each: given for each, given in {**grants, name: spoiled}.items() if given is not None
    }
    for forged in (
        changed,
        {**grants, "": (Grant("", 0, 0),)},
        {**grants, "nobody": (Grant("GPU-n-0", 0, 0),)},
    ):
        made = Ledger()
        made.set_node(node("n", [15, 15, 15], core=True))
        made.set_pod(placed_as(asker, forged))
        assert not made.tenants[asker.uid].booked, forged
        assert [tenant.pod.uid for tenant in made.unplaced()] == [asker.uid]


def placed_as(asker: Pod, grants: dict[str, Any]) -> Pod:
    return msgspec.structs.replace(asker, node="n", grants=grants)


# --- whole cards ----------------------------------------------------------------------------------


FORGED = [
    pytest.param(
        {"topology.kubernetes.io/gpu-group": "0"}, id="whole cards by the topology's annotation"
    ),
    pytest.param({"fairlead.io/gpu-allocation": '{"main":[{}]}'}, id="a grant without units"),
    pytest.param(
        {"fairlead.io/gpu-allocation": '{"main":[{"uuid":"GPU-n-0","units":4,"core":-1000}]}'},
        id="compute below nothing",
    ),
    pytest.param(
        {"fairlead.io/gpu-allocation": '{"main":[{"uuid":"GPU-n-0","units":4,"core":30}]}'},
        id="compute that it did not ask for",
    ),
]


@pytest.mark.parametrize("notes", FORGED)
def test_a_forged_grant_of_a_pod_that_shares_is_none(notes: dict[str, str]) -> None:
    asker = pod(node="n", annotations=notes, grants=parse_grants(notes, pod().containers))
    made = ledger(node(core=True))
    made.set_pod(asker)
    assert [tenant.pod.uid for tenant in made.unplaced()] == [asker.uid], (
        "shown as PENDING, and given a card before it starts"
    )
    assert cards(made.adopt(asker)) == {"main": [(0, 4)]}  # type: ignore[arg-type]
    written = {**notes, **render_bind(asker, made.tenants[asker.uid].grants, 15, 0.0)}
    assert not written.get("topology.kubernetes.io/gpu-group")


@pytest.mark.parametrize("notes", FORGED)
def test_a_forged_grant_of_a_pod_that_runs_frees_nothing(notes: dict[str, str]) -> None:
    made = ledger(node(core=True))
    made.set_pod(placed(pod(phase="Running"), "n", {"main": [(1, 4)]}))
    made.set_pod(
        pod(
            node="n",
            phase="Running",
            annotations=notes,
            grants=parse_grants(notes, pod().containers),
        )
    )
    assert [card.used for card in made.nodes["n"].cards] == [0, 4]
    assert made.tenants["uid-p"].is_misread, "and is written again"
    restarted = ledger(node(core=True))
    restarted.set_pod(
        pod(
            node="n",
            phase="Running",
            annotations=notes,
            grants=parse_grants(notes, pod().containers),
        )
    )
    assert [card.free for card in restarted.nodes["n"].cards] == [11, 11], (
        "which card it has is unknown"
    )


def test_whole_cards_are_granted_to_pods_that_share_none() -> None:
    whole = Pod(
        "ns",
        "whole",
        "uid-whole",
        node="n",
        containers=(Container("main", limits={"nvidia.com/gpu": 1}),),
    )
    for grants, is_usable in (
        ({"": (Grant("", 1, 0),)}, True),
        ({"main": (Grant("GPU-n-1", 1, 0),)}, True),
        ({"main": (Grant("GPU-n-1", 1, 4),)}, False),
        ({"main": (Grant("GPU-n-1", 1, 0, None, 50),)}, False),
    ):
        assert bool(booked_grants(msgspec.structs.replace(whole, grants=grants))) is is_usable
