"""Seats: what one plan lays out on the cluster's nodes.

Admitted units sit on what is free now, claimants on what will be free when all stopping and chosen
pods have gone.

A scheduler does not know of claims, and may bind an admitted pod to another node than here. So a
unit is not admitted if the scheduler could bind it where a claimant would then lack room.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fairlead.model.quota.state import QuotaPod
from fairlead.rules.quota.room import PlacedPod, Rooms, largest_first
from fairlead.rules.quota.units import Unit, VictimGroup


class Seats:
    """The seats of one plan. If nodes are not known (`rooms` is None), every unit has a seat.

    `taken`: the seats of each unit; the account removes them before the next plan. `kept`: the node
    for which the last unit was turned away, and the claimant that it is kept for.
    """

    def __init__(
        self,
        rooms: Rooms | None,
        taken: dict[Unit, list[PlacedPod]],
        stopping: Mapping[str, QuotaPod],
    ) -> None:
        self.rooms = rooms
        self.kept: tuple[str, str] | None = None
        self._taken = taken
        self._stopping = stopping
        self._holds: dict[Unit, int] = {}
        self._leaving: list[QuotaPod] | None = None
        self._left: list[PlacedPod] | None = None

    def reserve(self, claimants: Sequence[Unit]) -> None:
        """Lay out the claimants, the largest first.

        If that does not seat all of them, the oldest claim comes first.

        Seats are not remembered between plans: in this order small units do not take room that was
        made for large ones.
        """
        if self.rooms is None or not claimants:
            return
        order = sorted((unit for unit in claimants if unit.pods), key=_largest_first)
        if not all(self.hold(unit) for unit in order):
            for unit in order:
                self.leave(unit)
            for unit in sorted(order, key=_oldest_first):
                self.hold(unit)

    def admit(self, unit: Unit) -> bool:
        """Whether nodes have room for the unit now; it takes that room instead of its claim's."""
        self.kept = None
        rooms = self.rooms
        if rooms is None or not unit.pods:
            return True
        turn, held = self._holds.pop(unit, None), self._taken.pop(unit, [])
        rooms.unseat(held)
        self._look_now(rooms)
        if self._seat(rooms, unit):
            self.kept = self._endangered(rooms, unit, turn)
            if self.kept is None:
                return True
            self.leave(unit)
        if turn is not None:
            rooms.stay(held)
            self._taken[unit], self._holds[unit] = held, turn
        return False

    def hold(self, unit: Unit, chosen: Sequence[VictimGroup] = ()) -> bool:
        """Whether nodes have room for the unit once the chosen and all stopping pods have gone;
        then it is kept.

        Units that this plan admitted, among the chosen, lose their seats then.
        """
        rooms, self.kept = self.rooms, None
        if rooms is None or not unit.pods or (unit in self._holds and not chosen):
            return True
        self.leave(unit)
        left = self._look_later(rooms)
        pods = [pod for group in chosen if group.unit is None for pod in group.pods]
        going = rooms.leave(pods)
        fresh = {
            group.unit: self._taken.get(group.unit, [])
            for group in chosen
            if group.unit is not None
        }
        for seats in fresh.values():
            rooms.unseat(seats)
        if self._seat(rooms, unit):
            left += going
            if self._leaving is not None:
                self._leaving += pods
            self._holds[unit] = len(self._holds)
            for each in fresh:
                self._taken.pop(each, None)
            return True
        rooms.stay(going)
        for seats in fresh.values():
            rooms.stay(seats)
        return False

    def leave(self, unit: Unit) -> None:
        """Free the unit's seats."""
        self._holds.pop(unit, None)
        if self.rooms is not None:
            self.rooms.unseat(self._taken.pop(unit, ()))

    def may_ever_hold(self, unit: Unit) -> bool:
        """Whether each of its pods would fit on some node without any pod that quota counts."""
        rooms = self.rooms
        return rooms is None or all(
            any(rooms.could_hold(pod, node) for node in rooms.nodes_for(pod)) for pod in unit.pods
        )

    def rooms_later(self) -> Rooms | None:
        """The nodes as they will be when all stopping and chosen pods have gone."""
        if self.rooms is not None:
            self._look_later(self.rooms)
        return self.rooms

    def of(self, unit: Unit) -> Sequence[PlacedPod]:
        return self._taken.get(unit, ())

    def rooms_now(self) -> Rooms | None:
        """The nodes as they are, with all seats."""
        if self.rooms is not None:
            self._look_now(self.rooms)
        return self.rooms

    def _seat(self, rooms: Rooms, unit: Unit) -> bool:
        if not unit.layout:
            unit.layout = sorted(unit.pods, key=largest_first)
        seats = rooms.seat_in_order(unit.layout)
        if seats is not None:
            self._taken[unit] = seats
        return seats is not None

    def _endangered(self, rooms: Rooms, unit: Unit, turn: int | None) -> tuple[str, str] | None:
        """A node where a pod of the unit would fit now, and would not fit beside a claimant once
        all have gone; and that claimant. Among claimants only those laid out earlier count, so that
        they do not wait for each other in a circle.
        """
        held: dict[str, list[QuotaPod]] = {}
        before: dict[str, Unit] = {}
        for other, its in self._holds.items():
            for seat in self._taken[other]:
                held.setdefault(seat.node, []).append(seat.pod)
                if turn is None or its < turn:
                    before.setdefault(seat.node, other)
        for node, other in before.items():
            for seat in self._taken[unit]:
                if seat.node == node or not rooms.fits_on(seat.pod, node, held[node]):
                    continue
                if not rooms.fits_on(
                    seat.pod, node, [pod for pod in self._leaving or () if pod.node == node]
                ):
                    return node, other.key
        return None

    def _look_later(self, rooms: Rooms) -> list[PlacedPod]:
        """The pods that stop have left the nodes, until `rooms_now` is called."""
        if self._leaving is None:
            self._leaving = sorted(self._stopping.values(), key=lambda pod: (pod.key, pod.uid))
        if self._left is None:
            self._left = rooms.leave(self._leaving)
        return self._left

    def _look_now(self, rooms: Rooms) -> None:
        if self._left is not None:
            rooms.stay(self._left)
            self._left = None


def _largest_first(unit: Unit) -> tuple[object, ...]:
    return *min(largest_first(pod)[:-1] for pod in unit.pods), _oldest_first(unit)


def _oldest_first(unit: Unit) -> tuple[object, ...]:
    return unit.claim_since, unit.name
