"""Which GPUs are held and do nothing: one answer for each sentence, list and sum that speaks of idle GPUs.

A card is idle for who holds it as long as it is below 1 % and he has had it: what it did before is not his
doing. Nothing is said of a card that does not report, nor of one on a silent node. Amounts are in GPUs as
those allocated are: a whole card is 1, a share its part, so that what is idle is a part of what is held.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from msgspec import Struct

from fairlead.model.node import Node
from fairlead.model.occupancy import CardHolder, CardOccupancy, NodeOccupancy
from fairlead.model.pod import Pod
from fairlead.rules.holding.occupancy import seat_utilization
from fairlead.rules.nodes.status import is_silent
from fairlead.wire.metrics.gpu_readings import IDLE_BELOW

IDLE_SECONDS: Final = 3600
"""From here on a card counts as idle wherever idle cards are counted."""
_DAY_SECONDS: Final = 86_400


class IdleHours(Struct, frozen=True):
    """(namespace, pod, UUID of a card) -> hours of the last day in which that pod did nothing with it."""

    told: Mapping[tuple[str, str, str], float] = {}

    def of(self, card: CardOccupancy, holder: CardHolder) -> float:
        return self.told.get((holder.pod.namespace, holder.pod.name, card.uuid), 0.0)


class IdleSeat(Struct, frozen=True, gc=False):
    """A card that does nothing for one of its holders, or did within a day.

    `gpus`: what he has of it, a whole card is 1. `seconds`: of the idleness that goes on; `hours`: of the
    last day in all.
    """

    card: CardOccupancy
    pod: Pod
    gpus: float
    seconds: int
    hours: float

    @property
    def is_long(self) -> bool:
        return self.seconds >= IDLE_SECONDS


class Idleness:
    """All of a cluster, or of some of its nodes, at `now`.

    `hours`: what the series know of times before the idleness that goes on.
    """

    def __init__(self, nodes: Iterable[NodeOccupancy], now: float, hours: IdleHours | None = None) -> None:
        self.now = now
        known = hours or IdleHours()
        seats = [seat for each in nodes if not is_silent(each.node) for seat in _seats(each, now, known)]
        self.long = [seat for seat in seats if seat.is_long]
        self._cards = {(seat.card.node, seat.card.index) for seat in self.long}
        self._gpus: dict[str, float] = {}
        self._hours: dict[str, float] = {}
        for seat in seats:
            key = seat.pod.key
            self._hours[key] = self._hours.get(key, 0.0) + seat.gpus * seat.hours
            if seat.is_long:
                self._gpus[key] = self._gpus.get(key, 0.0) + seat.gpus

    def is_idle(self, card: CardOccupancy) -> bool:
        """Whether somebody holds it and has done nothing with it for an hour."""
        return (card.node, card.index) in self._cards

    @property
    def gpus(self) -> float:
        """Held, and idle for an hour."""
        return sum(self._gpus.values())

    def gpus_of(self, pod: Pod) -> float:
        """Those of them that this pod holds; it may be at work on others."""
        return self._gpus.get(pod.key, 0.0)

    def hours_of(self, pod: Pod) -> float:
        """GPU hours of the last day in which it did nothing with what it holds, as far as the series tell.

        The idleness that goes on counts whole, of one day at most.
        """
        return self._hours.get(pod.key, 0.0)


def card_idle_seconds(card: CardOccupancy, on: Node, now: float) -> int | None:
    """How long the card has been below 1 %, whoever holds it; None when it is busy or nobody knows."""
    since = card.reading.idle_since if card.reading and not is_silent(on) else None
    return None if since is None else max(0, int(now - since))


def seat_idle_seconds(card: CardOccupancy, holder: CardHolder, now: float) -> int | None:
    """How long the card has done nothing for this holder.

    0 where he is seen to use it, and else at least 1. None where nobody knows, as of a shared card that only
    others may use.
    """
    if (seat_utilization(card, holder) or 0.0) >= IDLE_BELOW:
        return 0
    since = card.reading.idle_since if card.reading else None
    if since is None:
        return None
    held = holder.pod.held_since
    return max(1, int(now - (since if held is None else max(since, held))))


def _seats(occupied: NodeOccupancy, now: float, hours: IdleHours) -> Iterator[IdleSeat]:
    for card in occupied.cards:
        for holder in card.holders:
            seconds = seat_idle_seconds(card, holder, now) or 0
            seen = max(min(seconds, _DAY_SECONDS) / 3600, _held_at_most(hours.of(card, holder), holder.pod, now))
            if seen:
                yield IdleSeat(card, holder.pod, holder.ratio or occupied.gpu_worth, seconds, seen)


def _held_at_most(hours: float, pod: Pod, now: float) -> float:
    """Another pod of the same name may have been there before this one."""
    return hours if pod.held_since is None else min(hours, max(0.0, now - pod.held_since) / 3600)
