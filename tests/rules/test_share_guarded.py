"""Guarded nodes: all containers of equal units that are starting on such a node have the same cards
and MiB.

See docs/spec/gpu-sharing.md#guarded-mode.
"""

from __future__ import annotations

import random
from collections.abc import Iterable

import msgspec
import pytest
from tests.rules.sharing import bound, cards, container, ledger, node, pod, used

from fairlead.model.actions import BindPod, Outcome
from fairlead.model.changes import KIND_NODES, KIND_PODS, changed
from fairlead.model.devices.granted import DeviceRefusal
from fairlead.model.devices.kubelet import HeldDevices
from fairlead.model.node import Node
from fairlead.model.pod import Pod
from fairlead.model.refusal import Refusal
from fairlead.model.resources import GPU_MEMORY
from fairlead.model.sharing import BindAsked
from fairlead.rules.devices.grant import guarded_grant
from fairlead.rules.sharing.alike import NotYet
from fairlead.rules.sharing.bindings import AnswerBind
from fairlead.rules.sharing.ledger import Ledger
from fairlead.rules.sharing.machine import SharingMachine
from fairlead.rules.sharing.preempt import Victims, plan_preemption
from fairlead.rules.sharing.what_if import place_pods

GUARDED = {"fairlead.io/gpu-identity": "guarded"}
PER_CONTAINER = {"fairlead.io/gpu-split": "per-container"}
SPREAD = {"fairlead.io/gpu-placement": "spread"}
WAITS = (
    "guarded node n: containers of {} GiB are starting there, on a GPU without room for this pod "
    "or with another memory limit"
)
NEVER = "containers of {} GiB of one pod need one GPU and memory limit on a guarded node"


def guarded(*units: int, name: str = "n") -> Node:
    return node(name, units or (15, 15), **GUARDED)


def place(made: Ledger, asker: Pod, name: str = "n") -> dict[str, list[tuple[int, int]]] | str:
    grants = made.reserve(asker, name)
    if isinstance(grants, Refusal):
        return grants.reason
    made.set_pod(
        bound(
            asker,
            name,
            grants,
            annotations={**asker.annotations, "ALIYUN_COM_GPU_MEM_ASSIGNED": "false"},
        )
    )
    return cards(grants)


def assign(made: Ledger, name: str, key: str = "ALIYUN_COM_GPU_MEM_ASSIGNED") -> None:
    row = made.tenants[f"uid-{name}"].pod
    made.set_pod(msgspec.structs.replace(row, annotations={**row.annotations, key: "true"}))


def assert_alike(pods: Iterable[Pod]) -> None:
    """The specification's sentence, checked on the placements of the pods."""
    seen: dict[tuple[str, int], object] = {}
    for each in pods:
        if (
            not each.is_holding
            or each.deleted_at is not None
            or "true" in each.annotations.values()
        ):
            continue
        for part in (*each.containers, *each.init_containers):
            units = part.limits.get(GPU_MEMORY, 0)
            if units:
                has = {(grant.uuid, grant.memory_mib) for grant in each.grants[part.name]}
                assert seen.setdefault((each.node, units), has) == has, (
                    f"{each.name}/{part.name} of {units} units: {has}"
                )


def test_equal_containers_go_to_one_card_until_they_have_it() -> None:
    made = ledger(guarded())
    assert place(made, pod("a", 4, annotations=SPREAD)) == {"main": [(0, 4)]}
    assert place(made, pod("b", 4, annotations=SPREAD)) == {"main": [(0, 4)]}, (
        "spread would have taken the other card"
    )
    assert place(made, pod("c", 3, annotations=SPREAD)) == {"main": [(1, 3)]}, (
        "another size goes its own way"
    )
    for name in ("a", "b"):
        assign(made, name)
    assert place(made, pod("d", 4, annotations=SPREAD)) == {"main": [(1, 4)]}


@pytest.mark.parametrize(
    "key", ["ALIYUN_COM_GPU_MEM_ASSIGNED", "scheduler.framework.gpushare.assigned"]
)
def test_without_room_beside_the_others_it_waits_and_both_keys_end_that(key: str) -> None:
    made = ledger(guarded())
    place(made, pod("a", 8))
    assert place(made, pod("b", 8)) == WAITS.format(8)
    assert made.filter(pod("b", 8), ["n"]).passed == ["n"], (
        "bind waits: that is no reason to look elsewhere for ever"
    )
    assert used(made) == [8, 0], "who waits holds nothing"
    assign(made, "a", key)
    assert place(made, pod("b", 8)) == {"main": [(1, 8)]}


@pytest.mark.parametrize("end", ["deleted", "finished", "gone", "rolled back"])
def test_an_ended_pod_is_waited_for_no_longer(end: str) -> None:
    made = ledger(guarded())
    if end == "rolled back":
        made.reserve(pod("a", 8), "n")
        assert isinstance(made.reserve(pod("b", 8), "n"), NotYet), (
            "what is only reserved counts, too"
        )
        made.roll_back("uid-a")
    else:
        place(made, pod("a", 8))
        row = made.tenants["uid-a"].pod
        made.remove_pod("uid-a") if end == "gone" else made.set_pod(
            msgspec.structs.replace(row, deleted_at=1.0)
            if end == "deleted"
            else msgspec.structs.replace(row, phase="Succeeded")
        )
    assert not isinstance(made.reserve(pod("b", 8), "n"), Refusal)


def test_another_memory_limit_is_another_size() -> None:
    made = ledger(guarded())
    place(made, pod("a", 4))
    assert place(made, pod("b", 4, memory_limits_mib={"main": 3500})) == WAITS.format(4)
    assert place(made, pod("c", 4, memory_limits_mib={"main": 99999})) == {"main": [(0, 4)]}, (
        "a limit above the grant changes nothing"
    )


def test_a_limit_that_makes_no_difference_on_one_card_leads_there() -> None:
    """4 units are 4301 MiB on the card of 15 units, and 4126 on the card of 100."""
    asker = pod(containers=[container("a", 4), container("b", 4)], memory_limits_mib={"a": 4200})
    assert place(ledger(node(units=(15, 100))), asker) == {"a": [(0, 4)], "b": [(0, 4)]}
    assert place(ledger(guarded(15, 100)), asker) == {"a": [(1, 4)], "b": [(1, 4)]}


def test_what_an_unbound_pod_reports_of_itself_is_not_believed() -> None:
    made = ledger(guarded())
    made.reserve(pod("a", 8, annotations={"ALIYUN_COM_GPU_MEM_ASSIGNED": "true"}), "n")
    assert isinstance(made.reserve(pod("b", 8), "n"), NotYet)


def test_the_same_units_over_more_cards_are_not_alike() -> None:
    made = ledger(guarded())
    assert place(made, pod("a", 8, cards=2)) == {"main": [(0, 4), (1, 4)]}
    assert place(made, pod("b", 8)) == WAITS.format(8)
    assert place(made, pod("c", 8, cards=2)) == {"main": [(0, 4), (1, 4)]}


def test_equal_containers_of_one_pod_get_one_card_even_where_each_may_have_its_own() -> None:
    parts = [container("a", 6), container("b", 6), container("c", 5)]
    freely = ledger(node(units=(6, 15, 8)))
    assert place(freely, pod(containers=parts, annotations=PER_CONTAINER)) == {
        "a": [(0, 6)],
        "b": [(2, 6)],
        "c": [(1, 5)],
    }
    made = ledger(guarded(6, 15, 8))
    assert place(made, pod(containers=parts, annotations=PER_CONTAINER)) == {
        "a": [(1, 6)],
        "b": [(1, 6)],
        "c": [(0, 5)],
    }


def test_an_init_container_binds_the_first_to_those_of_its_size() -> None:
    parts = [container("first", 8), container("second", 4)]
    asker = pod(
        containers=parts, init_containers=(container("init", 4),), annotations=PER_CONTAINER
    )
    assert place(ledger(node(units=(10, 15))), asker) == {
        "first": [(0, 8)],
        "second": [(1, 4)],
        "init": [(0, 4)],
    }
    assert place(ledger(guarded(10, 15)), asker) == {
        "first": [(1, 8)],
        "second": [(1, 4)],
        "init": [(1, 4)],
    }


def test_what_can_never_be_alike_is_reported_at_once() -> None:
    made = ledger(guarded(15, 15))
    parts = [container("a", 8), container("b", 8)]
    split = pod(containers=parts, annotations=PER_CONTAINER)
    assert made.filter(split, ["n"]).hopeless == {"n": NEVER.format(8)}
    assert place(made, split) == NEVER.format(8)
    differing = pod(
        containers=[container("a", 4), container("b", 4)], memory_limits_mib={"a": 3500}
    )
    assert made.filter(differing, ["n"]).hopeless == {"n": NEVER.format(4)}
    assert ledger().filter(differing, ["n"]).passed == ["n"], "a node that is not guarded takes it"


def test_what_others_hold_may_be_mended_by_preemption() -> None:
    """Without `lowest` each of the two containers would find a card, but not the same one."""
    made = ledger(guarded(12, 9))
    for name, units, priority in (("low", 4, 1), ("lowest", 3, 0)):
        place(made, pod(name, units, annotations=SPREAD, priority=priority))
        assign(made, name)
    asker = pod(
        "high",
        priority=10,
        containers=[container("a", 6), container("b", 6)],
        annotations=PER_CONTAINER,
    )
    assert made.filter(asker, ["n"]).failed == {"n": NEVER.format(6)}
    assert plan_preemption(made, asker, {"n": Victims(())}) == {"n": Victims(("uid-low",))}


def test_prioritize_prefers_the_node_where_no_pod_has_to_wait() -> None:
    made = ledger(guarded(), guarded(name="m"))
    for name in ("n", "m"):
        assert place(made, pod(f"opens-{name}", 8), name) == {"main": [(0, 8)]}
        assert place(made, pod(f"other-{name}", 9), name) == {"main": [(1, 9)]}
    assign(made, "opens-m")
    for name in ("n", "m"):
        made.remove_pod(f"uid-other-{name}")
        assert place(made, pod(f"later-{name}", 3, annotations=SPREAD), name) == {"main": [(1, 3)]}
    assert dict(made.prioritize(pod("b", 8), ["n", "m"])) == {"n": 0, "m": 7}, (
        "1 + 9 x (1 - 4/15), rounded down"
    )


def test_a_plan_does_not_wait() -> None:
    made = ledger(guarded())
    assert [each.node for each in place_pods(made, [pod("a", 8), pod("b", 8)])] == ["n", "n"]


def test_a_reservation_that_others_overtook_waits_for_them() -> None:
    """While this extender was without the Lease, another extender placed a pod of the same size on
    the other card.
    """
    made = ledger(guarded())
    mine = pod("mine", 4)
    assert cards(made.reserve(mine, "n")) == {"main": [(0, 4)]}  # type: ignore[arg-type]
    other = ledger(guarded(), used={("n", 0): 15}).reserve(pod("other", 4), "n")
    made.set_pod(bound(pod("other", 4), "n", other))  # type: ignore[arg-type]
    assert isinstance(made.reserve(mine, "n"), NotYet)
    assign(made, "other")
    assert cards(made.reserve(mine, "n")) == {"main": [(0, 4)]}  # type: ignore[arg-type]


# --- the decider ----------------------------------------------------------------------------------


def machine(*rows: Pod) -> SharingMachine:
    made = SharingMachine()
    made.feed.observe(changed(KIND_NODES, "n", guarded()))
    for row in rows:
        made.bindings.remember(row)
    return made


def asking(name: str) -> BindAsked:
    return BindAsked("default", name, f"uid-{name}", "n")


def do_bind(made: SharingMachine, name: str, now: float = 0.0) -> Pod:
    (call,) = made.bindings.ask(asking(name), now)
    assert isinstance(call, BindPod)
    assert made.bindings.called(call, Outcome(), now) == [AnswerBind(asking(name), "")]
    row = bound(call.pod, "n", call.grants)
    made.feed.observe(changed(KIND_PODS, row.uid, row))
    return row


def test_a_question_waits_and_goes_on_when_the_others_have_started() -> None:
    made = machine(pod("a", 8), pod("b", 8), pod("c", 3))
    first = do_bind(made, "a")
    assert made.bindings.ask(asking("b"), 10.0) == []
    assert made.bindings.ask(asking("b"), 11.0) == [], "the same question waits for the same answer"
    assert made.bindings.waited(14.9) == []
    do_bind(made, "c", 14.9)
    made.feed.observe(
        changed(
            KIND_PODS,
            first.uid,
            msgspec.structs.replace(first, annotations={"ALIYUN_COM_GPU_MEM_ASSIGNED": "true"}),
        )
    )
    (call,) = made.bindings.waited(14.95)
    assert isinstance(call, BindPod)
    assert cards(call.grants) == {"main": [(1, 8)]}
    assert not made.bindings.has_waiting


def test_after_five_seconds_it_is_an_error_and_the_next_question_waits_anew() -> None:
    made = machine(pod("a", 8), pod("b", 8))
    do_bind(made, "a")
    made.bindings.ask(asking("b"), 10.0)
    assert made.bindings.waited(15.0) == [AnswerBind(asking("b"), WAITS.format(8))]
    assert not made.bindings.has_waiting
    assert made.bindings.under_way == {}
    assert made.bindings.ask(asking("b"), 20.0) == []
    assert made.bindings.waited(24.9) == []


def test_without_the_lease_no_pod_waits() -> None:
    made = machine(pod("a", 8), pod("b", 8))
    do_bind(made, "a")
    made.bindings.ask(asking("b"), 10.0)
    assert made.bindings.waited(10.1, "no lease") == [AnswerBind(asking("b"), "no lease")]


def test_room_that_is_gone_ends_the_wait() -> None:
    made = machine(pod("a", 8), pod("b", 8), pod("big", 14))
    do_bind(made, "a")
    made.bindings.ask(asking("b"), 10.0)
    do_bind(made, "big", 10.1)
    (answer,) = made.bindings.waited(10.2)
    assert answer == AnswerBind(
        asking("b"), "Insufficient aliyun.com/gpu-mem on one GPU: need 8 GiB, largest free 7 GiB"
    )


def test_a_pod_that_was_placed_by_hand_is_given_cards_when_the_others_have_started() -> None:
    made = machine(pod("a", 8))
    first = do_bind(made, "a")
    made.feed.observe(changed(KIND_PODS, "uid-x", pod("x", 8, node="n")))
    assert [action for action in made.adoption.look() if action is not None] == []
    made.feed.observe(
        changed(
            KIND_PODS,
            first.uid,
            msgspec.structs.replace(first, annotations={"ALIYUN_COM_GPU_MEM_ASSIGNED": "true"}),
        )
    )
    (written,) = [action for action in made.adoption.look() if action is not None]
    assert cards(written.grants) == {"main": [(1, 8)]}  # type: ignore[union-attr]


def assert_the_agent_answers(made: Ledger) -> None:
    """The node agent's own rule, asked for every size that may be requested now: it serves all of
    them.
    """
    row, pods = made.node("n"), [tenant.pod for tenant in made.tenants.values()]
    started = [each for each in pods if "true" in each.annotations.values()]
    held = [
        HeldDevices(GPU_MEMORY, (), part.name, pod_uid=each.uid)
        for each in started
        for part in (*each.containers, *each.init_containers)
    ]
    for units in {
        part.limits[GPU_MEMORY]
        for each in pods
        if each not in started
        for part in (*each.containers, *each.init_containers)
    }:
        ids = [f"{row.gpus[0].uuid}-_-{number}" for number in range(units)]
        given = guarded_grant(ids, pods, held, row.gpus)
        assert not isinstance(given, DeviceRefusal), given


# --- random histories -----------------------------------------------------------------------------


def _random_pod(rng: random.Random, name: str) -> Pod:
    shape, units = rng.random(), rng.randint(1, 5)
    if shape < 0.2:
        return pod(name, units * 2, cards=2)
    parts = [
        container(f"c{number}", rng.randint(1, 5)) for number in range(rng.choice((1, 1, 2, 3)))
    ]
    init = tuple(
        container(f"i{number}", rng.randint(1, 5), restartable=rng.random() < 0.5)
        for number in range(rng.choice((0, 0, 1, 2)))
    )
    wishes = {part.name: 1000 for part in parts if rng.random() < 0.1}
    annotations = {
        **(PER_CONTAINER if rng.random() < 0.5 else {}),
        **(SPREAD if rng.random() < 0.5 else {}),
    }
    return pod(
        name,
        containers=parts,
        init_containers=init,
        annotations=annotations,
        memory_limits_mib=wishes,
    )


@pytest.mark.parametrize("seed", range(40))
def test_in_any_life_equal_containers_that_start_are_alike(seed: int) -> None:
    rng = random.Random(seed)
    made = ledger(guarded(15, 8, 15, 12))
    placed = waited = 0
    for number in range(120):
        living = [tenant.pod for tenant in made.tenants.values()]
        chance = rng.random()
        if chance < 0.5:
            asker = _random_pod(rng, f"p{number}")
            passed = made.filter(asker, ["n"]).passed
            answer = made.reserve(asker, "n")
            assert bool(passed) == (
                isinstance(answer, NotYet) or not isinstance(answer, Refusal)
            ), "filter and bind agree"
            waited += isinstance(answer, NotYet)
            if not isinstance(answer, Refusal):
                placed += 1
                made.set_pod(bound(asker, "n", answer))
        elif living and chance < 0.8:
            assign(made, rng.choice(living).name)
        elif living:
            made.remove_pod(rng.choice(living).uid)
        assert_alike(tenant.pod for tenant in made.tenants.values())
        assert_the_agent_answers(made)
    assert placed > 10
    assert waited
