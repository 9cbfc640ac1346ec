"""The label, holders, faults and driver of a node's cards change in any order while a kubelet
allocates device ids.

The kubelet knows only the lists that it received last, so it may bind a container to a card on the
basis of a list from before the label changed. In every order of events no card is held in both
modes (docs/spec/gpu-sharing.md#switching-a-node-between-shared-and-exclusive,
docs/spec/gpu-sharing.md#device-plugin, docs/spec/gpu-sharing.md#gpu-health).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.rules.devices.cards import t4, uuid

from fairlead.model.devices.driver import CardAnswer
from fairlead.model.devices.gpu import CardMode, GpuSlot, Grant, Health
from fairlead.model.devices.kubelet import HeldDevices, OfferedDevice
from fairlead.model.pod import Pod, PodPhase
from fairlead.rules.devices.card_health import CardHealths
from fairlead.rules.devices.card_mode import CardPlan, card_holders, card_plan

MEMORY, CORE, WHOLE = "aliyun.com/gpu-mem", "aliyun.com/gpu-core.percentage", "nvidia.com/gpu"
COUNT = 3
CARDS = [t4(index, units=3) for index in range(COUNT)]
some_card = st.integers(0, COUNT - 1)
some_labels = st.sampled_from(
    [
        {},
        {"cgpu": "true"},
        {"cgpu": "false"},
        {"ack.node.gpu.schedule": "core_mem"},
        {"gpushare": "true"},
    ]
)


class CardLives(RuleBasedStateMachine):
    """The agent sees the actual state; the kubelet sees the lists that it was sent."""

    @initialize(labels=some_labels)
    def begin(self, labels: Mapping[str, str]) -> None:
        self.now = 1e9
        self.made = 0
        self.labels = labels
        self.healths = CardHealths()
        self.there = set(range(COUNT))
        self.withheld: frozenset[int] = frozenset()
        self.is_foreign = False
        self.sharing: dict[str, Pod] = {}
        self.whole: dict[str, HeldDevices] = {}
        self.healths.shown([card.uuid for card in CARDS])
        self.send()

    def judged(self) -> tuple[GpuSlot, ...]:
        return self.healths.judged(CARDS, self.withheld)

    @rule()
    def send(self) -> None:
        holders = card_holders(CARDS, list(self.whole.values()), list(self.sharing.values()), ())
        self.plan: CardPlan = card_plan(
            self.labels, self.judged(), holders, is_foreign=self.is_foreign
        )
        self.sent: dict[str, tuple[OfferedDevice, ...]] = dict(self.plan.lists)
        self.sent_shared = [
            card.uuid
            for card in self.plan.cards
            if card.mode == CardMode.SHARED and card.health == Health.HEALTHY
        ]

    # --- events -----------------------------------------------------------------------------------

    @rule(labels=some_labels)
    def relabel(self, labels: Mapping[str, str]) -> None:
        self.labels = labels

    @rule(labels=some_labels, card=some_card)
    def relabel_and_be_asked_before_and_after_it_is_received(
        self, labels: Mapping[str, str], card: int
    ) -> None:
        self.labels = labels
        for _ in range(2):
            self.bind(card)
            self.give_whole(card)
            self.send()

    @rule(card=some_card)
    def bind(self, card: int) -> None:
        """The scheduler places a pod according to the inventory."""
        if uuid(card) in self.sent_shared:
            self.made += 1
            name = f"s{self.made}"
            grants = {"c": (Grant(uuid(card), card, 1, 1077),)}
            self.sharing[name] = Pod(
                "ns", name, uid=name, phase=PodPhase.RUNNING, node="n", grants=grants
            )

    @rule(card=some_card)
    def give_whole(self, card: int) -> None:
        """The kubelet allocates a healthy id that no container has."""
        taken = {uuid for held in self.whole.values() for uuid in held.ids}
        if OfferedDevice(uuid(card), True) in self.sent.get(WHOLE, ()) and uuid(card) not in taken:
            self.made += 1
            self.whole[f"w{self.made}"] = HeldDevices(
                WHOLE, (uuid(card),), "c", "ns", f"w{self.made}"
            )

    @precondition(lambda self: self.sharing or self.whole)
    @rule(data=st.data())
    def end_one(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted({**self.sharing, **self.whole})))
        self.sharing.pop(name, None)
        self.whole.pop(name, None)

    @rule(card=st.none() | some_card, xid=st.sampled_from([31, 48, 62, 79, 94]))
    def xid(self, card: int | None, xid: int) -> None:
        self.healths.xid(xid, None if card is None else uuid(card), self.now)

    @rule(
        card=some_card,
        fault=st.sampled_from(["", "", "GPU is lost"]),
        energy=st.none() | st.integers(0, 9),
    )
    def probe(self, card: int, fault: str, energy: int | None) -> None:
        answer = CardAnswer(fault, is_down=True) if fault else CardAnswer(energy_mj=energy)
        self.healths.probed(uuid(card), answer, self.now)

    @rule(seconds=st.sampled_from([30.0, 700.0, -1e6, 1e9, 0.0]))
    def time_goes(self, seconds: float) -> None:
        self.now += seconds

    @rule(there=st.sampled_from([{0, 1, 2}, {0, 1, 2}, {0, 2}, set()]))
    def driver_shows(self, there: set[int]) -> None:
        self.there = there
        self.healths.shown([uuid(card) for card in there])

    @rule(withheld=st.sampled_from([frozenset[int](), frozenset({1})]))
    def operator_takes(self, withheld: frozenset[int]) -> None:
        self.withheld = withheld

    @rule()
    def all_is_mended(self) -> None:
        self.healths.was_reset(None)
        self.driver_shows({0, 1, 2})
        self.withheld, self.is_foreign = frozenset(), False

    @rule(is_foreign=st.booleans())
    def foreign_plugin(self, is_foreign: bool) -> None:
        self.is_foreign = is_foreign

    # --- invariants -------------------------------------------------------------------------------

    @invariant()
    def no_card_is_held_in_both_modes(self) -> None:
        whole = {each for held in self.whole.values() for each in held.ids}
        parts = {grant.uuid for pod in self.sharing.values() for grant in pod.grants["c"]}
        assert not whole & parts

    @invariant()
    def a_card_is_in_one_list_and_of_one_health_there(self) -> None:
        reported = {
            resource: [device.id for device in devices] for resource, devices in self.sent.items()
        }
        assert all(ids == sorted(set(ids)) for ids in reported.values())
        for card in CARDS:
            parts = [each for each in self.sent.get(MEMORY, ()) if each.id.startswith(card.uuid)]
            cores = [each for each in self.sent.get(CORE, ()) if each.id.startswith(card.uuid)]
            whole = [each for each in self.sent.get(WHOLE, ()) if each.id.startswith(card.uuid)]
            assert not (parts and whole) and not (cores and whole)
            assert (len(parts), len(cores), len(whole)) in {
                (0, 0, 0),
                (3, 0, 0),
                (3, 100, 0),
                (0, 0, 1),
            }
            assert max(
                Counter(each.is_healthy for each in (*parts, *cores, *whole)).values(), default=0
            ) == len(parts + cores + whole)

    @invariant()
    def nothing_is_offered_of_a_card_that_drains_or_is_ill(self) -> None:
        offered = {
            each.id[: len(uuid(0))]
            for devices in self.sent.values()
            for each in devices
            if each.is_healthy
        }
        for card in self.plan.cards:
            assert card.uuid not in offered or (
                card.mode != CardMode.DRAINING and card.health == Health.HEALTHY
            )

    @invariant()
    def a_card_without_reason_is_healthy_and_no_other(self) -> None:
        for card in self.judged():
            assert (card.health == Health.HEALTHY) == (card.reason == "")
            assert not (card.index in self.withheld and card.health == Health.HEALTHY)
            assert not (card.index not in self.there and card.health == Health.HEALTHY)

    @invariant()
    def a_card_settles_without_a_holder(self) -> None:
        if not self.sharing and not self.whole:
            self.send()
            assert all(card.mode != CardMode.DRAINING for card in self.plan.cards)


TestCardLives = CardLives.TestCase
TestCardLives.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)
