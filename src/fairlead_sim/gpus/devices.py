"""The GPUs of the simulated cluster and their holders: the port `Devices`, over all nodes.

Kubelets come here for whole cards (as to a device plugin) and report what starts and ends;
exporters come for samples.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from fairlead.model.devices.device import DeviceSample
from fairlead.model.devices.gpu import CardMode, GpuMode, Health
from fairlead.model.devices.gpu_load import LoadTest, SimulatedLoad
from fairlead.model.devices.kubelet import RegionCard
from fairlead_sim.gpus.card import UNKNOWN_FAULT, Card, ForeignProgram, Hold, Run
from fairlead_sim.gpus.cards import CardModel, card_model
from fairlead_sim.gpus.division import CardPart, bad_division, divided
from fairlead_sim.gpus.load import make_load
from fairlead_sim.gpus.prof_load import ProfLoad
from fairlead_sim.gpus.readings import read_card
from fairlead_sim.objects.asked_memory import (
    AskedMemory,
    GotMemory,
    MemoryHook,
    within_its_share,
)
from fairlead_sim.objects.chance import chance, digest, fraction, uuid_of
from fairlead_sim.objects.saved import HeldCard
from fairlead_sim.time.clock import SimClock

Owner = tuple[str, str, str]
"""Namespace, pod, uid."""
NODES_IN_PART: Final = 40
"""Of eight cards each: some ten milliseconds of work."""


class SimulatedDevices:
    def __init__(self, seed: int, clock: SimClock) -> None:
        self._seed = seed
        self._clock = clock
        self._cards: dict[str, list[Card]] = {}
        self._answering: list[str] = []
        self._holds: dict[str, list[tuple[Card, Hold]]] = {}
        self._loaded: set[str] = set()
        self.memory: MemoryHook = within_its_share

    def add_node(
        self,
        node: str,
        model: CardModel,
        count: int,
        *,
        shared: bool,
        is_silent: bool = False,
        mig: Sequence[str] = (),
    ) -> None:
        """A node with `count` cards, each divided into instances of the profiles `mig`; a silent
        node has no readings (its kubelet and its exporter do not answer).
        """
        self._cards[node] = [self._new_card(node, index, model, shared) for index in range(count)]
        self._divide(node, mig)
        if not is_silent:
            insort(self._answering, node)

    def add_cards(self, node: str, models: Sequence[CardModel]) -> None:
        """A node with these cards, each for itself."""
        self._cards[node] = [
            self._new_card(node, index, model, False) for index, model in enumerate(models)
        ]
        self._divide(node, ())
        insort(self._answering, node)

    def restore_node(
        self,
        node: str,
        inventory: Sequence[Mapping[str, Any]],
        *,
        is_silent: bool,
        mig: Sequence[str] = (),
    ) -> None:
        """A node with the cards of its inventory (annotation `fairlead.io/gpus`).

        Their counters start at zero.
        """
        self._cards[node] = [self._listed_card(node, entry) for entry in inventory]
        self._divide(
            node, () if any(bad_division(card.model, mig) for card in self._cards[node]) else mig
        )
        self.set_silent(node, is_silent)

    def _listed_card(self, node: str, listed: Mapping[str, Any]) -> Card:
        model = card_model(str(listed["model"]), int(listed["memoryMiB"]))
        card = self._new_card(node, int(listed["index"]), model, listed["mode"] == CardMode.SHARED)
        card.uuid, card.minor = str(listed["uuid"]), int(listed["minor"])
        if listed["health"] != Health.HEALTHY:
            reason = str(listed.get("reason") or "").removeprefix("XID ")
            card.failed_by = int(reason) if reason.isdigit() else UNKNOWN_FAULT
        return card

    def set_silent(self, node: str, is_silent: bool) -> None:
        """Whether readings of the node's cards arrive."""
        if is_silent and node in self._answering:
            self._answering.remove(node)
        elif not is_silent and node in self._cards and node not in self._answering:
            insort(self._answering, node)

    def cards(self, node: str) -> Sequence[Card]:
        """The cards of a node, by index; empty for a node without."""
        return self._cards.get(node, ())

    def free_cards(self, node: str) -> list[Card]:
        """Healthy cards without holders that are not divided, lowest index first."""
        return [
            card
            for card in self.cards(node)
            if card.is_healthy and not card.holds and not card.instances
        ]

    def free_instances(self, node: str, profile: str) -> list[tuple[Card, CardPart]]:
        """MIG instances of healthy cards without holders, in order."""
        return [
            (card, each)
            for card in self.cards(node)
            for each in card.instances
            if card.is_healthy and each.profile == profile and not card.holds_of(each)
        ]

    def hold(
        self,
        card: Card,
        owner: Owner,
        container: str,
        *,
        mode: GpuMode,
        limit_mib: int,
        gpu_instance: int | None = None,
        counts: RegionCard | None = None,
    ) -> None:
        """Give (a part of) a card to a container until `release`.

        `counts`: those of the memory guard since its last start in an earlier life.
        """
        namespace, pod, uid = owner
        hold = Hold(
            *(namespace, pod, uid, container, mode, limit_mib),
            gpu_instance=gpu_instance,
            counts=counts,
        )
        card.holds.append(hold)
        self._holds.setdefault(uid, []).append((card, hold))

    def held(self, uid: str, container: str = "") -> list[tuple[Card, Hold]]:
        """The cards of a pod, or of one of its containers."""
        return [
            (card, hold)
            for card, hold in self._holds.get(uid, ())
            if not container or hold.container == container
        ]

    def held_by(self, uid: str) -> list[HeldCard]:
        """The cards of a pod, as `restore_node` and `hold` would have them again."""
        held = self._holds.get(uid, ())
        return [
            HeldCard(
                *(hold.container, card.index, hold.mode, hold.limit_mib, hold.gpu_instance),
                counts=hold.counts,
            )
            for card, hold in held
        ]

    def start(
        self,
        uid: str,
        container: str,
        load: str | tuple[LoadTest, ...],
        sizes_mib: Sequence[int] | None = None,
        lived_seconds: float = 0.0,
    ) -> Sequence[tuple[str, str]] | None:
        """The container begins to work on its cards, now or `lived_seconds` ago; None: it does not
        get the memory. Else what the node's agent will report of the pod, by reason and message.

        A named load is drawn from the container's names, and differs a little from card to card;
        tests generate exactly what they declare. `sizes_mib`: what it allocates on each card, one
        after another; else a part of its share, as the load decides.
        """
        began = self._clock.now() - lived_seconds
        held, warnings = self.held(uid, container), list[tuple[str, str]]()
        for card, hold in held:
            ceiling = _ceiling(card, hold)
            random = chance(self._seed, "load", hold.namespace, hold.pod, container, card.index)
            made = (
                make_load(load, random, ceiling)
                if isinstance(load, str)
                else ProfLoad(load, ceiling)
            )
            got = self._memory(card, hold, sizes_mib or (int(hold.limit_mib * made.memory_ratio),))
            hold.counts = got.counts
            if not got.is_granted:
                for other, each in held:
                    other.stop(each, self._clock.now())
                return None
            hold.fixed_mib = None if sizes_mib is None else sum(sizes_mib)
            card.start(hold, made, began)
            warnings += got.warnings
        return warnings

    def _memory(self, card: Card, hold: Hold, sizes_mib: Sequence[int]) -> GotMemory:
        """A card or instance that a container has for itself is its only limit."""
        if hold.mode != GpuMode.SHARE:
            return GotMemory(sum(sizes_mib) <= hold.limit_mib)
        return self.memory(
            AskedMemory(
                card.node,
                hold.namespace,
                hold.pod,
                hold.pod_uid,
                hold.container,
                card.uuid,
                hold.limit_mib,
                card.free_mib(hold),
                sizes_mib,
            )
        )

    def stop(self, uid: str, container: str) -> None:
        for card, hold in self.held(uid, container):
            card.stop(hold, self._clock.now())

    def release(self, uid: str, container: str = "") -> None:
        """The pod, or one of its containers, is gone or finished: its cards are free again."""
        let_go = self.held(uid, container)
        for card, hold in let_go:
            card.stop(hold, self._clock.now())
            card.holds.remove(hold)
        kept = [
            each
            for each in self._holds.pop(uid, ())
            if container and each[1].container != container
        ]
        if kept:
            self._holds[uid] = kept

    def show_loads(self, loads: Sequence[SimulatedLoad]) -> None:
        """What cards show from now on; other cards show only the work of their containers.

        Of two loads for one card the greater counts, part by part.
        """
        if not loads and not self._loaded:
            return
        now, loaded = self._clock.now(), set[str]()
        for card in (card for cards in self._cards.values() for card in cards):
            mine = [load.parts for load in loads if load.is_for(card.node, card.index, card.uuid)]
            card.show_load(
                {
                    field: max(parts.get(field, 0.0) for parts in mine)
                    for field in {part for parts in mine for part in parts}
                },
                now,
            )
            if mine:
                loaded.add(card.uuid)
        self._loaded = loaded

    def hang(self, node: str, index: int, since: float, until: float | None) -> None:
        """The card's calls do not return between two instants
        (epoch seconds; `until` None: never).
        """
        self._cards[node][index].hangs.append((since, until))

    def take_memory(
        self, node: str, index: int, mib: int, load: str, since: float, until: float | None
    ) -> None:
        """A program without a grant takes `mib` of the card and works on it."""
        card = self._cards[node][index]
        random = chance(self._seed, "stranger", node, index, len(card.strangers))
        card.strangers.append(
            ForeignProgram(
                mib,
                Run(make_load(load, random, min(1.0, mib / card.model.memory_mib)), since, until),
            )
        )

    def stuck_calls(self) -> int:
        """Cards of nodes that answer whose calls hang now."""
        now = self._clock.now()
        return sum(
            card.hangs_since(now) is not None
            for node in self._answering
            for card in self._cards[node]
        )

    def as_they_are(self) -> Sequence[Card]:
        """The cards that answer now, in the order of `sample`, as they stay."""
        return [card.as_it_is() for node in self._answering for card in self._cards[node]]

    def sample(self, *, is_brief: bool = False) -> Sequence[DeviceSample]:
        """All cards that answer, now; `is_brief`: only what boards show of each."""
        now = self._clock.now()
        return [
            read_card(card, now, is_brief=is_brief)
            for node in self._answering
            for card in self._cards[node]
        ]

    def in_parts(self, *, is_brief: bool = False) -> Iterator[Sequence[DeviceSample]]:
        """Like `sample`, some cards at a time: time may pass between two parts, and each part is of
        its own instant. A node that falls silent meanwhile is left out.
        """
        nodes = tuple(self._answering)
        for at in range(0, len(nodes), NODES_IN_PART):
            now, there = self._clock.now(), set(self._answering)
            yield [
                read_card(card, now, is_brief=is_brief)
                for node in nodes[at : at + NODES_IN_PART]
                if node in there
                for card in self._cards[node]
            ]

    def _divide(self, node: str, mig: Sequence[str]) -> None:
        """The node has all its cards: they know of each other, and each is divided so."""
        indexes = [card.index for card in self._cards[node]]
        for card in self._cards[node]:
            card.others = tuple(index for index in indexes if index != card.index)
        for card in self._cards[node] if mig else ():
            card.instances = divided(card.model, mig)
            numbers = [each.gpu_instance for each in card.instances]
            card.instance_uuids = {
                number: f"MIG-{uuid_of(self._seed, 'mig', node, card.index, number)}"
                for number in numbers
            }

    def _new_card(self, node: str, index: int, model: CardModel, shared: bool) -> Card:
        bus = 7 + 13 * index
        return Card(
            node=node,
            index=index,
            minor=index,
            uuid=f"GPU-{uuid_of(self._seed, 'gpu', node, index)}",
            pci_bus_id=f"00000000:{bus:02X}:00.0",
            serial=str(
                1_320_000_000_000
                + int.from_bytes(digest(self._seed, "serial", node, index)[:4], "big")
            ),
            model=model,
            is_shared=shared,
            booted_at=self._clock.now(),
            ambient=27.0 + 5.0 * fraction(self._seed, "ambient", node, index),
            efficiency=0.94 + 0.06 * fraction(self._seed, "efficiency", node, index),
        )


def _ceiling(card: Card, hold: Hold) -> float:
    """The part of the card that the container can keep busy."""
    if hold.mode == GpuMode.SHARE:
        return hold.limit_mib / card.model.memory_mib
    return next(
        (each.compute for each in card.instances if each.gpu_instance == hold.gpu_instance), 1.0
    )
