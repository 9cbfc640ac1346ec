"""Which pods a reading of a card is about, and what part of the card each of them holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from fairlead.model.devices.gpu import BUSY_FROM, GpuHolder, GpuReading
from fairlead.model.usage.ledger import GPU, LedgerCard
from fairlead.rules.usage.recording.hours import HourBook
from fairlead.rules.usage.recording.intervals import Intervals, NodeBook, OpenPod

Name = tuple[str, str]


class CardSeat(Struct, frozen=True, gc=False):
    """A pod on a card. `weight`: what it holds of it, in millionths; 0 = not known yet."""

    uid: str
    weight: int
    utilization: float


class _OnNode(Struct):
    """Pods of a node: by card as grants name it, and by name those without a grant."""

    granted: dict[str, list[tuple[str, int, Name]]] = {}
    bare: dict[Name, str] = {}


class CardReadings:
    """Counts readings of cards for the pods on them."""

    def __init__(self, intervals: Intervals, hours: HourBook) -> None:
        self._intervals = intervals
        self._hours = hours
        self._nodes: dict[str, _OnNode] = {}

    def doubt(self, nodes: Iterable[str]) -> None:
        """Pods of these nodes have changed."""
        for name in nodes:
            self._nodes.pop(name, None)

    def read(self, by_node: Mapping[str, Sequence[GpuReading]], now: int) -> None:
        """Count the readings of nodes. Those of the future of the clock are of now."""
        for name, gpus in by_node.items():
            book = self._intervals.nodes.get(name)
            if book is not None and book.pods:
                self._read_node(book, gpus, now)

    def _read_node(self, book: NodeBook, gpus: Sequence[GpuReading], now: int) -> None:
        bare: dict[str, list[tuple[GpuReading, CardSeat, tuple[int, int]]]] = {}
        there = self._nodes.get(book.name)
        if there is None:
            there = self._nodes[book.name] = _on_node(book, self._intervals.pods)
        for gpu in gpus:
            if gpu.utilization_ratio is None:
                continue
            card = gpu.uuid or f"#{gpu.index}"
            span = self._hours.read(book.name, card, min(round(gpu.read_at * 1000), now))
            if span is None:
                continue
            for seat in _seats(there, gpu, gpu.utilization_ratio):
                if seat.weight:
                    self._count(seat, card, seat.weight, span)
                else:
                    bare.setdefault(seat.uid, []).append((gpu, seat, span))
        for uid, seen in bare.items():
            self._count_bare(self._intervals.pods[uid], seen)

    def _count_bare(
        self, opened: OpenPod, seen: Sequence[tuple[GpuReading, CardSeat, tuple[int, int]]]
    ) -> None:
        """A pod whose cards only exporters know: it holds the same of each."""
        row = opened.row
        expected = max(len(seen), -(-row.amount.gpu // GPU))
        for gpu, seat, span in seen:
            self._count(seat, gpu.uuid or f"#{gpu.index}", row.amount.gpu // expected, span)
        if not row.cards and len(seen) >= expected:
            cards = tuple(sorted({LedgerCard(gpu.uuid, gpu.index) for gpu, _, _ in seen}))
            self._intervals.cards_found(row.pod_uid, cards)

    def _count(self, seat: CardSeat, card: str, weight: int, span: tuple[int, int]) -> None:
        key = self._intervals.pods[seat.uid].key
        start = max(span[0], key[1])
        if start < span[1]:
            is_busy = seat.utilization >= BUSY_FROM
            self._hours.used(key, card, weight, start, span[1], is_busy=is_busy)


def _seats(there: _OnNode, gpu: GpuReading, whole: float) -> Sequence[CardSeat]:
    """The pods on a card. `whole`: the utilization of the card."""
    granted, bare = there.granted, there.bare
    on_card = (granted.get(gpu.uuid) or granted.get(f"#{gpu.index}") or ()) if granted else ()
    if not gpu.instances and len(on_card) == 1 and not bare:  # nearly every card
        uid, weight, name = on_card[0]
        ratios = [
            each.utilization_ratio for each in gpu.holders if (each.namespace, each.pod) == name
        ]
        known = [each for each in ratios if each is not None]
        return (CardSeat(uid, weight, max(known) if known else whole),)
    if not gpu.instances and not on_card and len(gpu.holders) == 1:  # the others
        (holder,) = gpu.holders
        if (found := bare.get((holder.namespace, holder.pod))) is None:
            return ()
        known_ratio = holder.utilization_ratio
        return (CardSeat(found, 0, max(0.0, whole if known_ratio is None else known_ratio)),)
    own = _own_utilization(gpu)
    seats = [CardSeat(uid, weight, own.get(name, whole)) for uid, weight, name in on_card]
    for name, utilization in own.items() if bare else ():
        if (found := bare.get(name)) is not None:
            seats.append(CardSeat(found, 0, utilization))
    return seats


def _own_utilization(gpu: GpuReading) -> dict[Name, float]:
    """By pod: the largest utilization of its containers, else of its MIG instance, else the
    card's.
    """
    found: dict[Name, float] = {}
    whole = gpu.utilization_ratio or 0.0
    for instance in gpu.instances:
        known = instance.utilization_ratio
        _take(found, instance.holders, whole if known is None else known)
    if not gpu.instances:
        _take(found, gpu.holders, whole)
    return found


def _take(found: dict[Name, float], holders: Iterable[GpuHolder], otherwise: float) -> None:
    for holder in holders:
        name = holder.namespace, holder.pod
        own = holder.utilization_ratio if holder.utilization_ratio is not None else otherwise
        found[name] = max(own, found.get(name, 0.0))


def _on_node(book: NodeBook, pods: Mapping[str, OpenPod]) -> _OnNode:
    there = _OnNode()
    for uid in book.pods:
        row = pods[uid].row
        if not row.amount.gpu:
            continue
        name = row.by.namespace, row.pod
        total = sum(each.mib for each in row.cards)
        if any(each.index < 0 for each in row.cards) or not row.cards:
            there.bare[name] = uid
            continue
        for each in row.cards:
            part = row.amount.gpu * each.mib // total if total else row.amount.gpu // len(row.cards)
            there.granted.setdefault(each.uuid or f"#{each.index}", []).append((uid, part, name))
    return there
