"""What one plan lays out on the cluster's nodes: who is admitted sits on what is free now, who claims on what
will be free when all have gone that stop, or are chosen to.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from fairlead.model.quota.state import QuotaPod
from fairlead.rules.quota.room import Placed, Rooms
from fairlead.rules.quota.units import Unit, VictimGroup


class Seats:
    """Of one plan. Where nodes are not known (`rooms` is None) everybody has a seat.

    `taken`: the seats of each unit, which the account takes away again before the next plan.
    """

    def __init__(self, rooms: Rooms | None, taken: dict[Unit, list[Placed]], pods: Mapping[str, QuotaPod]) -> None:
        self.rooms = rooms
        self._taken = taken
        self._pods = pods
        self._leaving: list[QuotaPod] | None = None
        self._left: list[Placed] | None = None

    def admit(self, unit: Unit) -> bool:
        """Whether nodes have room for it now, which it takes."""
        if self.rooms is None or not unit.pods:
            return True
        self._look_now(self.rooms)
        return self._seat(self.rooms, unit)

    def hold(self, unit: Unit, chosen: Sequence[VictimGroup] = ()) -> bool:
        """Whether nodes have room for it once those have gone, and all who stop; nobody else gets it.

        What this very plan admitted among the chosen has no seat any more when it is so.
        """
        rooms = self.rooms
        if rooms is None or not unit.pods:
            return True
        left = self._look_later(rooms)
        pods = [pod for group in chosen if group.unit is None for pod in group.pods]
        going = rooms.leave(pods)
        fresh = {group.unit: self._taken.get(group.unit, []) for group in chosen if group.unit is not None}
        for seats in fresh.values():
            rooms.unseat(seats)
        if self._seat(rooms, unit):
            left += going
            self._gone(pods)
            for each in fresh:
                self._taken.pop(each, None)
            return True
        rooms.stay(going)
        for seats in fresh.values():
            rooms.stay(seats)
        return False

    def rooms_later(self) -> Rooms | None:
        """The nodes as they will be when all have gone who stop, or are chosen to."""
        if self.rooms is not None:
            self._look_later(self.rooms)
        return self.rooms

    def of(self, unit: Unit) -> Sequence[Placed]:
        return self._taken.get(unit, ())

    def turn_in(self, unit: Unit) -> bool:
        """Whether there is room for it already, which it takes instead of what it holds."""
        if self.rooms is None or not unit.pods:
            return True
        held = self._taken[unit]
        self.rooms.unseat(held)
        if self.admit(unit):
            return True
        self.rooms.stay(held)
        return False

    def leave(self, unit: Unit) -> None:
        """Its seats are free again."""
        if self.rooms is not None:
            self.rooms.unseat(self._taken.pop(unit, ()))

    def close(self) -> None:
        """The plan is made: nobody has left yet."""
        if self.rooms is not None:
            self._look_now(self.rooms)

    def _seat(self, rooms: Rooms, unit: Unit) -> bool:
        seats = rooms.seat(unit.pods)
        if seats is not None:
            self._taken[unit] = seats
        return seats is not None

    def _gone(self, pods: Iterable[QuotaPod]) -> None:
        if self._leaving is not None:
            self._leaving += pods

    def _look_later(self, rooms: Rooms) -> list[Placed]:
        """Those who stop have left; it stays so until somebody asks for what is free now."""
        if self._leaving is None:
            self._leaving = [pod for pod in self._pods.values() if pod.is_stopping and pod.is_admitted]
        if self._left is None:
            self._left = rooms.leave(self._leaving)
        return self._left

    def _look_now(self, rooms: Rooms) -> None:
        if self._left is not None:
            rooms.stay(self._left)
            self._left = None
