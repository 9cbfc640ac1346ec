"""GPUs that are held and idle: the one source for all sentences, lists and sums about idle GPUs.

A card is idle for a holder while it is below 1 % and the holder has it; earlier idleness does not
count. A card without readings, or on an unreachable node, is never idle. Amounts are in GPUs as
allocated ones are: a whole card is 1, a share its part, so that idle amounts are part of held
amounts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from copy import copy
from functools import cached_property
from typing import Final

from msgspec import Struct

from fairlead.model.devices.gpu import BUSY_FROM
from fairlead.model.node import Node
from fairlead.model.occupancy import CardHolder, CardOccupancy, NodeOccupancy
from fairlead.model.pod import Pod
from fairlead.rules.holding.occupancy import seat_utilization
from fairlead.rules.nodes.status import is_silent

IDLE_SECONDS: Final = 3600
"""From here on a card counts as idle wherever idle cards are counted."""
_DAY_SECONDS: Final = 86_400


class IdleHours(Struct, frozen=True):
    """(namespace, pod, UUID of a card) -> hours of the last day
    in which the card was idle for that pod.
    """

    hours_by_key: Mapping[tuple[str, str, str], float] = {}

    def of(self, card: CardOccupancy, holder: CardHolder) -> float:
        return self.hours_by_key.get((holder.pod.namespace, holder.pod.name, card.uuid), 0.0)


class IdleSeat(Struct, frozen=True, gc=False):
    """A card that is idle for one of its holders, or was within a day.

    `gpus`: the holder's part, a whole card is 1. `seconds`: current idle time; `hours`: idle hours
    of the last day.
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
    """Idle cards of a cluster, or of some of its nodes, at `now`.

    `hours`: idle hours from the series, before the current idle time.
    """

    def __init__(
        self, nodes: Iterable[NodeOccupancy], now: float, hours: IdleHours | None = None
    ) -> None:
        self.now = now
        known = hours or IdleHours()
        seats = [
            seat for each in nodes if not is_silent(each.node) for seat in _seats(each, now, known)
        ]
        self.long = [seat for seat in seats if seat.is_long]
        self._cards = {(seat.card.node, seat.card.index) for seat in self.long}
        self._gpus: dict[str, float] = {}
        self._hours: dict[str, float] = {}
        for seat in seats:
            key = seat.pod.key
            self._hours[key] = self._hours.get(key, 0.0) + seat.gpus * seat.hours
            if seat.is_long:
                self._gpus[key] = self._gpus.get(key, 0.0) + seat.gpus

    def within(self, namespaces: Collection[str]) -> Idleness:
        """The same for the pods of these namespaces alone."""
        part = copy(self)  # with the same `_hours`: they are asked for by pod
        part.long = [
            seat for name in sorted(namespaces) for seat in self._long_by_namespace.get(name, ())
        ]
        part._cards = {(seat.card.node, seat.card.index) for seat in part.long}
        part._gpus = {seat.pod.key: self._gpus[seat.pod.key] for seat in part.long}
        return part

    @cached_property
    def _long_by_namespace(self) -> dict[str, list[IdleSeat]]:
        found: dict[str, list[IdleSeat]] = {}
        for seat in self.long:
            found.setdefault(seat.pod.namespace, []).append(seat)
        return found

    def is_idle(self, card: CardOccupancy) -> bool:
        """Whether a pod holds it and it has been idle for an hour."""
        return (card.node, card.index) in self._cards

    @property
    def gpus(self) -> float:
        """GPUs that are held and have been idle for an hour."""
        return sum(self._gpus.values())

    def gpus_of(self, pod: Pod) -> float:
        """Idle GPUs of this pod; it may use others."""
        return self._gpus.get(pod.key, 0.0)

    def hours_of(self, pod: Pod) -> float:
        """GPU hours of the last day in which its GPUs were idle, as far as the series go back.

        The current idle time counts completely, up to one day.
        """
        return self._hours.get(pod.key, 0.0)


def card_idle_seconds(card: CardOccupancy, on: Node, now: float) -> int | None:
    """Seconds for which the card has been below 1 %, for any
    holder; None if it is busy or unknown.
    """
    since = card.reading.idle_since if card.reading and not is_silent(on) else None
    return None if since is None else max(0, int(now - since))


def seat_idle_seconds(card: CardOccupancy, holder: CardHolder, now: float) -> int | None:
    """Seconds for which the card has been idle for this holder.

    0 if the holder is known to use it, else at least 1. None if unknown, such as a shared card that
    other pods may use.
    """
    if (seat_utilization(card, holder) or 0.0) >= BUSY_FROM:
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
            seen = max(
                min(seconds, _DAY_SECONDS) / 3600,
                _held_at_most(hours.of(card, holder), holder.pod, now),
            )
            if seen:
                yield IdleSeat(card, holder.pod, holder.ratio or occupied.gpu_worth, seconds, seen)


def _held_at_most(hours: float, pod: Pod, now: float) -> float:
    """Another pod of the same name may have been there before this one."""
    return hours if pod.held_since is None else min(hours, max(0.0, now - pod.held_since) / 3600)
