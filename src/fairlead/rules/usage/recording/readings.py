"""Which pods a reading of a card is about, and what part of the card each of them holds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

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

    def read(self, gpus: Iterable[GpuReading], now: int) -> None:
        """Count the readings. Those of the future of the clock are of now."""
        bare: dict[str, list[tuple[GpuReading, CardSeat, tuple[int, int]]]] = {}
        for gpu in gpus:
            book = self._intervals.nodes.get(gpu.node)
            if gpu.utilization_ratio is None or book is None or not book.pods:
                continue
            card = gpu.uuid or f"#{gpu.index}"
            span = self._hours.read(gpu.node, card, min(round(gpu.read_at * 1000), now))
            if span is None:
                continue
            for seat in self._seats(book, gpu):
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
        began = self._intervals.pods[seat.uid].row.started_at
        start = max(span[0], began)
        if start < span[1]:
            is_busy = seat.utilization >= BUSY_FROM
            self._hours.used((seat.uid, began), card, weight, start, span[1], is_busy=is_busy)

    def _seats(self, book: NodeBook, gpu: GpuReading) -> Iterator[CardSeat]:
        there = self._nodes.get(book.name)
        if there is None:
            there = self._nodes[book.name] = _on_node(book, self._intervals.pods)
        assert gpu.utilization_ratio is not None
        whole = gpu.utilization_ratio
        granted = there.granted.get(gpu.uuid) or there.granted.get(f"#{gpu.index}") or ()
        if len(granted) == 1 and not gpu.instances and not there.bare:  # nearly every card
            uid, weight, name = granted[0]
            ratios = [
                each.utilization_ratio for each in gpu.holders if (each.namespace, each.pod) == name
            ]
            known = [each for each in ratios if each is not None]
            yield CardSeat(uid, weight, max(known) if known else whole)
            return
        own = _own_utilization(gpu)
        for uid, weight, name in granted:
            yield CardSeat(uid, weight, own.get(name, whole))
        for name, utilization in own.items() if there.bare else ():
            if (found := there.bare.get(name)) is not None:
                yield CardSeat(found, 0, utilization)


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
