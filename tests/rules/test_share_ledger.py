"""The ledger: reservations, changes of the cluster, restarts. The main property: no card is ever
granted twice.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule
from tests.rules.held import held_at_most
from tests.rules.sharing import bound, cards, container, ledger, node, placed, pod, used

from fairlead.model.devices.gpu import Grant
from fairlead.model.node import Node
from fairlead.model.pod import ContainerStatus, GrantsByContainer, Pod
from fairlead.model.refusal import Refusal
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.rules.holding.account import ASSIGNED, BOUND, RESERVED
from fairlead.rules.sharing.ledger import Ledger, ledger_of


def given(answer: GrantsByContainer | Refusal) -> GrantsByContainer:
    assert not isinstance(answer, Refusal), answer
    return answer


def test_a_reservation_is_repeated_rolled_back_and_confirmed() -> None:
    made, asker = ledger(), pod()
    grants = given(made.reserve(asker, "n"))
    assert made.reserve(asker, "n") == grants, "the same question, the same answer"
    assert made.reserve(asker, "other") == Refusal("pod default/p is already on node n")
    assert [tenant.state for tenant in made.reserved()] == [RESERVED]
    made.roll_back(asker.uid)
    assert used(made) == [0, 0]
    grants = given(made.reserve(asker, "n"))
    made.set_pod(bound(asker, "n", grants))
    made.roll_back(asker.uid)
    assert (made.tenants[asker.uid].state, used(made)) == (BOUND, [4, 0]), (
        "what the cluster reported stays"
    )
    made.set_pod(bound(asker, "n", grants, annotations={"ALIYUN_COM_GPU_MEM_ASSIGNED": "true"}))
    assert made.tenants[asker.uid].state == ASSIGNED


def test_a_reservation_whose_room_was_sold_meanwhile_is_not_honoured() -> None:
    """The extender that holds the reservation was without the Lease, and does not know yet whether
    the pod was bound.
    """
    made, asker = ledger(node(units=(15,))), pod(units=8)
    made.reserve(asker, "n")
    made.set_pod(placed(pod("other", 8), "n", {"main": [(0, 8)]}))
    assert made.reserve(asker, "n") == Refusal(
        "the room held for pod default/p on node n was given to others"
    )
    assert used(made) == [16], "and yet it may be bound: what was asked first is not decided"
    made.remove_pod("uid-other")
    assert cards(given(made.reserve(asker, "n"))) == {"main": [(0, 8)]}


def test_news_about_an_unbound_pod_does_not_end_its_reservation() -> None:
    made, asker = ledger(), pod()
    made.reserve(asker, "n")
    made.set_pod(msgspec.structs.replace(asker, labels={"new": "label"}))
    assert used(made) == [4, 0]


def test_a_grant_that_was_corrected_moves() -> None:
    made = ledger()
    made.set_pod(placed(pod(), "n", {"main": [(0, 4)]}))
    made.set_pod(placed(pod(), "n", {"main": [(1, 4)]}))
    assert used(made) == [0, 4]


def test_a_grant_that_is_damaged_while_its_pod_is_bound_frees_nothing() -> None:
    made = ledger()
    made.set_pod(placed(pod(), "n", {"main": [(1, 4)]}, phase="Running"))
    for damaged in (
        placed(pod(), "n", {"main": [(1, 5)]}),
        placed(pod(), "n", {"main": [(7, 4)]}),
        bound(pod(), "n", {}),
    ):
        made.set_pod(msgspec.structs.replace(damaged, phase="Running"))
        tenant = made.tenants["uid-p"]
        assert (used(made), cards(tenant.grants), tenant.is_misread) == (
            [0, 4],
            {"main": [(1, 4)]},
            True,
        )
    made.set_pod(placed(pod(), "n", {"main": [(1, 4)]}, phase="Running"))
    assert not made.tenants["uid-p"].is_misread
    made.set_pod(placed(pod(), "n", {"main": [(1, 4)]}, phase="Failed"))
    assert used(made) == [0, 0]


WAITING, RUNNING = (
    ContainerStatus("main", state="waiting"),
    ContainerStatus("init", state="running"),
)


def hidden(name: str, units: int, **more: Any) -> Pod:
    """A pod that runs on node n, but on an unknown card."""
    return pod(name, units, **{"node": "n", "phase": "Running", **more})


@pytest.mark.parametrize("phase", ["Pending", "Running"])
def test_a_pod_on_its_node_without_its_cards_is_not_reserved_but_to_be_written(
    phase: str,
) -> None:
    """Another process bound the pod, or its grant was damaged before the binding was seen. A failed
    binding of this extender does not free its memory.
    """
    made, asker = ledger(), pod()
    grants = given(made.reserve(asker, "n"))
    made.set_pod(bound(asker, "n", {}, phase=phase))
    made.roll_back(asker.uid)
    assert (used(made), made.reserved(), made.tenants[asker.uid].is_misread) == ([4, 0], [], True)
    assert made.adopt(made.tenants[asker.uid].pod) == grants
    made.set_pod(bound(asker, "n", grants, phase=phase))
    assert (made.tenants[asker.uid].state, made.tenants[asker.uid].is_misread) == (BOUND, False)


def test_cards_that_were_never_written_are_chosen_anew_where_they_were_sold_meanwhile() -> None:
    made, asker = ledger(), pod(units=8)
    made.reserve(asker, "n")
    made.set_pod(bound(asker, "n", {}))
    made.set_pod(placed(pod("other", 8), "n", {"main": [(0, 8)]}))
    assert cards(given(made.adopt(bound(asker, "n", {})))) == {"main": [(1, 8)]}
    assert used(made) == [8, 8]


def test_what_runs_on_an_unknown_card_counts_on_every_card_that_may_be_it() -> None:
    made = ledger(node(units=(15, 15, 15)), used={("n", 0): 12})
    made.set_pod(hidden("a", 4))
    assert [card.free for card in made.nodes["n"].cards] == [3, 11, 11], (
        "card 0 has no room for it, so it is absent"
    )
    made.set_pod(hidden("b", 10))
    assert [card.free for card in made.nodes["n"].cards] == [3, 1, 1]
    why = (
        "Insufficient aliyun.com/gpu-mem on one GPU: need 4 GiB, largest free 3 GiB (14 GiB set "
        "aside for 2 pods whose GPU is unknown)"
    )
    assert made.filter(pod("c", 4), ["n"]).failed == {"n": why}
    assert made.filter(pod("c", 3), ["n"]).passed == ["n"]
    made.remove_pod("uid-b")
    assert cards(given(made.reserve(pod("c", 11), "n"))) == {"main": [(1, 11)]}
    made.set_pod(placed(pod("a", 4), "n", {"main": [(1, 4)]}, phase="Running"))
    assert [card.free for card in made.nodes["n"].cards] == [3, 0, 15], "now it is known"


@pytest.mark.parametrize(
    ("more", "is_counted"),
    [
        pytest.param({"phase": "Pending"}, False, id="who has not started holds nothing yet"),
        pytest.param(
            {"phase": "Pending", "statuses": (WAITING,)},
            False,
            id="nor does who waits for its image",
        ),
        pytest.param(
            {"phase": "Pending", "init_statuses": (RUNNING,), "statuses": (WAITING,)},
            True,
            id="an init container has its card",
        ),
        pytest.param(
            {"phase": "Running", "deleted_at": 1.0}, True, id="who leaves holds it till the end"
        ),
        pytest.param(
            {"phase": "Running", "containers": [container("main", 0)]},
            False,
            id="who asks for nothing holds nothing",
        ),
        pytest.param(
            {"phase": "Running", "labels": {"aliyun.com/gpu-count": "x"}},
            True,
            id="a need that makes no sense holds what it names",
        ),
    ],
)
def test_pods_that_count_as_running_on_an_unknown_card(
    more: dict[str, Any], is_counted: bool
) -> None:
    made = ledger()
    made.set_pod(hidden("a", 4, **more))
    assert [card.free for card in made.nodes["n"].cards] == ([11, 11] if is_counted else [15, 15])


def test_another_scheduler_was_faster() -> None:
    made, asker = ledger(node(), node("m")), pod()
    made.reserve(asker, "n")
    made.set_pod(placed(asker, "m", {"main": [(1, 4)]}))
    assert (used(made), used(made, "m")) == ([0, 0], [0, 4])


def test_a_foreign_pod_is_adopted_where_it_runs_or_gets_the_reason() -> None:
    made = ledger(node(units=(15,)), used={("n", 0): 5})
    small, large = pod("small", 8, node="n"), pod("large", 8, node="n")
    made.set_pod(small)
    made.set_pod(large)
    assert {tenant.pod.name for tenant in made.unplaced()} == {"small", "large"}
    assert cards(given(made.adopt(small))) == {"main": [(0, 8)]}
    assert made.adopt(large) == Refusal(
        "Insufficient aliyun.com/gpu-mem on one GPU: need 8 GiB, largest free 2 GiB"
    )
    assert [tenant.pod.name for tenant in made.unplaced()] == ["large"]
    assert used(made) == [13]


def test_a_pod_on_its_node_is_not_held_back_by_a_promise() -> None:
    made = ledger(node(units=(15,)))
    made.set_pod(pod("vip", 15, priority=9, nominated_node="n"))
    running = pod("foreign", 4, node="n")
    made.set_pod(running)
    assert cards(given(made.adopt(running))) == {"main": [(0, 4)]}


def test_a_node_that_shrinks_is_overcommitted_and_never_below_zero() -> None:
    made = ledger(node(units=(15, 15)), used={("n", 0): 12, ("n", 1): 3})
    made.set_node(node(units=(8,)))
    account = made.nodes["n"]
    assert [(card.free, card.overcommitted) for card in account.cards] == [(0, 4)]
    assert account.overcommitted == 4 + 3, "what is held on a card that is gone counts, too"
    made.set_node(node(units=(15, 15)))
    assert (used(made), account.largest_free) == ([12, 3], 0)
    assert made.nodes["n"].largest_free == 12


def test_an_inventory_that_claims_more_than_its_card_has_is_not_believed() -> None:
    huge = 99_999_999_999
    made = ledger(
        node(slots={0: {"units": huge}, 1: {"units": huge, "memory_mib": 1}}),
        node("m", (15,), slots={0: {"memory_mib": None, "units": huge}}),
    )
    assert [card.units for card in made.nodes["n"].cards] == [15, 0]
    assert [card.units for card in made.nodes["m"].cards] == [15], "no more than the node offers"
    assert made.filter(pod(units=16), ["n", "m"]).hopeless == dict.fromkeys(
        "nm", "need 16 GiB on one GPU, largest has 15 GiB"
    )


def test_a_card_is_known_by_its_uuid_wherever_its_index_goes() -> None:
    made = ledger(used={("n", 0): 12})
    made.set_node(node(slots={0: {"uuid": "GPU-n-1"}, 1: {"uuid": "GPU-n-0"}}))
    assert used(made) == [0, 12]


def test_without_an_inventory_the_index_is_all_there_is() -> None:
    bare = msgspec.structs.replace(node(), gpus=())
    made = ledger(bare)
    assert [(card.key, card.units) for card in made.nodes["n"].cards] == [("#0", 15), ("#1", 15)]
    made.set_pod(bound(pod(), "n", {"main": (Grant("", 1, 4),)}))
    assert used(made) == [0, 4]


def test_a_node_that_went_and_came_back_finds_its_tenants() -> None:
    made = ledger(used={("n", 0): 12})
    made.remove_node("n")
    assert made.filter(pod(), ["n"]).failed == {
        "n": "node not yet known to the GPU share scheduler"
    }
    made.set_node(node())
    assert used(made) == [12, 0]


def test_pods_that_come_before_their_node_are_counted() -> None:
    made = Ledger()
    made.set_pod(placed(pod(), "n", {"main": [(1, 4)]}))
    made.set_node(node())
    assert used(made) == [0, 4]


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_finished_pod_lets_go(phase: str) -> None:
    made = ledger()
    made.set_pod(placed(pod(), "n", {"main": [(0, 4)]}))
    made.set_pod(placed(pod(), "n", {"main": [(0, 4)]}, phase=phase))
    assert (used(made), made.tenants) == ([0, 0], {})


# --- the model ------------------------------------------------------------------------------------

SIZES = st.integers(1, 12)
NODES = st.sampled_from(["n1", "n2"])


class Storm(RuleBasedStateMachine):
    """A cluster (`self.pods`: the pods of its API server) and the ledger beside it, which is
    updated late, twice, or after a restart.
    """

    asked = Bundle("asked")

    def __init__(self) -> None:
        super().__init__()
        self.pods: dict[str, Pod] = {}
        self.nodes: dict[str, Node] = {}
        self.in_flight: dict[str, tuple[str, GrantsByContainer]] = {}
        self.ledger = Ledger()
        self.sits: dict[str, GrantsByContainer] = {}
        self.number = 0
        self.has_shrunk = False

    @initialize(
        first=st.lists(st.integers(8, 15), min_size=1, max_size=3),
        second=st.lists(st.integers(8, 15), max_size=2),
    )
    def begin(self, first: list[int], second: list[int]) -> None:
        for name, units in (("n1", first), ("n2", second)):
            self.nodes[name] = node(name, units, core=True)
            self.ledger.set_node(self.nodes[name])

    @rule(
        target=asked,
        units=SIZES,
        kind=st.sampled_from(["one", "cards", "two", "split", "init", "core"]),
        priority=st.integers(0, 2),
    )
    def ask(self, units: int, kind: str, priority: int) -> str:
        self.number += 1
        more: dict[str, Any] = {"priority": priority}
        if kind == "cards":
            units, more = 2 * units, {**more, "cards": 2}
        elif kind in ("two", "split"):
            more["containers"] = [container("a", units), container("b", 3)]
            more["annotations"] = (
                {"fairlead.io/gpu-split": "per-container"} if kind == "split" else {}
            )
        elif kind == "init":
            more["init_containers"] = (
                container("i", 7),
                container("s", 1, 20, restartable=True),
                container("j", 5, 60),
            )
        elif kind == "core":
            more["core"] = 40
        asker = pod(f"p{self.number}", units, **more)
        self.pods[asker.uid] = asker
        self.ledger.set_pod(asker)
        return asker.uid

    @rule(
        uid=asked,
        name=NODES,
        outcome=st.sampled_from(["reported", "untold", "refused", "unknown", "lost"]),
    )
    def bind(self, uid: str, name: str, outcome: str) -> None:
        asker = self.pods.get(uid)
        if asker is None or asker.node:
            return
        says_yes = self.ledger.filter(asker, [name]).passed == [name]
        grants = self.ledger.reserve(asker, name)
        held_elsewhere = isinstance(grants, Refusal) and grants.reason.startswith("pod ")
        assert (
            held_elsewhere or says_yes is not isinstance(grants, Refusal) or uid in self.in_flight
        ), "bind does what filter answered"
        if isinstance(grants, Refusal):
            return
        if outcome == "refused":
            self.ledger.roll_back(uid)
            self.in_flight.pop(uid, None)
            return
        # the call never arrived, and this is unknown: the reservation stays
        if outcome == "unknown":
            self.in_flight[uid] = (name, grants)
            return
        self.pods[uid] = bound(asker, name, grants)
        if outcome == "told":
            self.ledger.set_pod(self.pods[uid])
        else:
            self.in_flight[uid] = (name, grants)  # it arrived, and the reply was lost

    @rule(uid=asked)
    def settle(self, uid: str) -> None:
        """One GET after an unknown outcome."""
        if uid not in self.in_flight:
            return
        del self.in_flight[uid]
        now = self.pods.get(uid)
        if now is None:
            self.ledger.remove_pod(uid)
        elif now.node:
            self.ledger.set_pod(now)
        else:
            self.ledger.roll_back(uid)

    @rule(uid=asked, name=NODES)
    def nominate(self, uid: str, name: str) -> None:
        asker = self.pods.get(uid)
        if asker is not None and not asker.node:
            self.pods[uid] = msgspec.structs.replace(asker, nominated_node=name)
            self.ledger.set_pod(self.pods[uid])

    @rule(uid=asked)
    def receive_again(self, uid: str) -> None:
        if uid in self.pods and uid not in self.in_flight:
            self.ledger.set_pod(self.pods[uid])

    @rule(uid=asked, ending=st.sampled_from(["terminating", "finished", "gone"]))
    def end(self, uid: str, ending: str) -> None:
        now = self.pods.get(uid)
        if now is None or uid in self.in_flight:
            return
        if ending == "gone":
            del self.pods[uid]
            self.ledger.remove_pod(uid)
            return
        change: dict[str, Any] = (
            {"deleted_at": 1.0} if ending == "terminating" else {"phase": "Succeeded"}
        )
        self.pods[uid] = msgspec.structs.replace(now, **change)
        self.ledger.set_pod(self.pods[uid])

    @rule(uid=asked)
    def damage(self, uid: str) -> None:
        """A user who may write grants damages one. The pod continues to run on its card."""
        now = self.pods.get(uid)
        if now is not None and now.is_holding and now.grants and uid not in self.in_flight:
            self.sits.setdefault(uid, now.grants)
            self.pods[uid] = msgspec.structs.replace(now, grants={}, phase="Running")
            self.ledger.set_pod(self.pods[uid])

    @rule(uid=asked)
    def write_again(self, uid: str) -> None:
        """The extender writes the damaged grant again, if the ledger still has it."""
        tenant, now = self.ledger.tenants.get(uid), self.pods.get(uid)
        if tenant is not None and now is not None and tenant.is_misread and now.is_holding:
            assert tenant.grants == self.sits[uid]
            self.pods[uid] = msgspec.structs.replace(now, grants=tenant.grants)
            self.ledger.set_pod(self.pods[uid])

    @invariant()
    def no_card_holds_more_than_it_has(self) -> None:
        """Counts where pods really are, whatever their annotations contain."""
        sums: dict[str, tuple[int, int]] = {}
        for uid, real in self.pods.items():
            if real.is_holding:
                for uuid, (units, core) in held_at_most(
                    real, self.sits.get(uid) or real.grants
                ).items():
                    before = sums.get(uuid, (0, 0))
                    sums[uuid] = before[0] + units, before[1] + core
        sizes = {slot.uuid: slot.units for each in self.nodes.values() for slot in each.gpus}
        assert self.has_shrunk or all(
            units <= sizes[uuid] and core <= 100 for uuid, (units, core) in sums.items()
        ), sums

    @rule(units=SIZES, name=NODES)
    def come_from_elsewhere(self, units: int, name: str) -> None:
        """A pod that another scheduler bound: it is adopted, or stays without a card."""
        self.number += 1
        foreign = pod(f"f{self.number}", units, node=name, phase="Running")
        self.pods[foreign.uid] = foreign
        self.ledger.set_pod(foreign)
        grants = self.ledger.adopt(foreign)
        if not isinstance(grants, Refusal):
            self.pods[foreign.uid] = bound(foreign, name, grants)
            self.ledger.set_pod(self.pods[foreign.uid])

    @rule(name=NODES, units=st.lists(st.integers(1, 15), max_size=3))
    def change_node(self, name: str, units: list[int]) -> None:
        self.has_shrunk = True
        self.nodes[name] = node(name, units, core=True)
        self.ledger.set_node(self.nodes[name])

    @rule()
    def restart(self) -> None:
        """The extender dies. What it had only in memory is lost; calls under way were answered or
        never arrived.
        """
        self.in_flight.clear()
        self.ledger = self.rebuilt()

    def rebuilt(self) -> Ledger:
        return ledger_of(
            ClusterSnapshot(nodes=tuple(self.nodes.values()), pods=tuple(self.pods.values()))
        )

    @invariant()
    def no_card_is_given_away_twice(self) -> None:
        for account in self.ledger.nodes.values():
            for card in account.cards:
                assert card.free >= 0
                assert self.has_shrunk or (
                    card.used <= card.units and card.core_used <= card.core_total
                ), card
        held: dict[tuple[str, str], int] = {}
        for uid, real in self.pods.items():
            if real.is_holding and real.grants:
                assert uid in self.ledger.tenants, "a grant that the cluster knows is never lost"
                for account in [self.ledger.nodes[real.node]]:
                    for seat in account.seats(self.ledger.tenants[uid]):
                        held[real.node, seat.key] = (
                            held.get((real.node, seat.key), 0) + seat.grant.units
                        )
        for (name, key), units in held.items():
            for card in self.ledger.nodes[name].cards:
                assert card.key != key or card.used >= units

    @invariant()
    def a_rebuilt_ledger_is_the_same(self) -> None:
        if self.in_flight or any(tenant.is_misread for tenant in self.ledger.tenants.values()):
            return  # the rebuilt ledger knows less than this one
        again = self.rebuilt()
        for name, account in self.ledger.nodes.items():
            own = [(card.key, card.used, card.core_used, card.free) for card in account.cards]
            assert own == [
                (card.key, card.used, card.core_used, card.free) for card in again.nodes[name].cards
            ]
            assert account.strays == again.nodes[name].strays
            assert set(account.promised) == set(again.nodes[name].promised)
        for asker in (
            pod("asker", 5),
            pod("asker", 5, annotations={"fairlead.io/gpu-placement": "spread"}),
            pod("other", 2),
        ):
            assert self.ledger.filter(asker, ["n1", "n2"]) == again.filter(asker, ["n1", "n2"])
            assert self.ledger.prioritize(asker, ["n1", "n2"]) == again.prioritize(
                asker, ["n1", "n2"]
            )


TestStorm = Storm.TestCase
TestStorm.settings = settings(max_examples=50, deadline=None)
