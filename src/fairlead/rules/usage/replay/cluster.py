"""The nodes of a replay: which there are, what pods that quota does not count take of them, and
which cards of shared GPUs are free.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from msgspec.structs import replace

from fairlead.model.quota.state import NodeRoom, QuotaPod
from fairlead.model.resources import PODS
from fairlead.rules.quota.room import PlacedPod
from fairlead.rules.usage.replay.history import NodeSpan


class ReplayedCluster:
    """Pods `come` to nodes and `go`; `strange` ones take room of their node besides.

    Nodes that are not known are allowed everywhere, and have no room to give.
    """

    def __init__(self) -> None:
        self._spans: dict[str, NodeSpan] = {}
        self._rooms: dict[str, NodeRoom] = {}
        self._taken: defaultdict[str, defaultdict[str, int]] = defaultdict(lambda: defaultdict(int))
        self._on: defaultdict[str, dict[str, tuple[int, int]]] = defaultdict(dict)
        """By node and uid of a pod: its card (-1 = none), and the units of memory on it."""
        self._used: defaultdict[str, defaultdict[str, int]] = defaultdict(lambda: defaultdict(int))
        """By node: what bound pods hold, counted or not."""
        self._stale: set[str] = set()
        self._is_changed = True
        self._is_any_known = False

    def put(self, span: NodeSpan) -> None:
        """The node appears, or changes."""
        self._spans[span.room.name] = span
        self._stale.add(span.room.name)
        self._is_any_known = True

    def remove(self, span: NodeSpan) -> list[str]:
        """The node has gone, unless it only changed: uids of the pods that were on it."""
        name = span.room.name
        if self._spans.get(name) is not span:
            return []
        del self._spans[name]
        self._rooms.pop(name, None)
        self._stale.discard(name)
        self._is_changed = True
        return list(self._on.get(name, ()))

    def renew(self) -> None:
        """The next `changed` returns the nodes even if none has changed."""
        self._is_changed = True

    def changed(self) -> tuple[NodeRoom, ...] | None:
        """The nodes, if one has changed since the last call; None otherwise, or none was known."""
        for name in self._stale:
            self._rooms[name] = self._room(self._spans[name])
        is_changed = self._is_changed or bool(self._stale)
        self._is_changed = False
        self._stale.clear()
        return tuple(self._rooms.values()) if is_changed and self._is_any_known else None

    def come(self, pod: QuotaPod, card: int = -1) -> None:
        """A pod is bound to its node. `card`: -1 = that with the smallest free part that fits."""
        span = self._spans.get(pod.node)
        holes = list(self._room(span).holes) if span is not None and pod.card_units else []
        if card < 0 and holes:
            fitting = [(hole, at) for at, hole in enumerate(holes) if hole >= pod.card_units]
            card = min(fitting)[1] if fitting else -1
        self._on[pod.node][pod.uid] = card if holes else -1, pod.card_units
        self._use(pod, 1)
        self._touch(pod.node, is_shared=bool(holes))

    def go(self, pod: QuotaPod) -> None:
        card, _ = self._on[pod.node].pop(pod.uid, (-1, 0))
        self._use(pod, -1)
        self._touch(pod.node, is_shared=card >= 0)

    def strange(self, pod: QuotaPod, sign: int) -> None:
        """A pod that quota does not count takes its room, or returns it."""
        taken = self._taken[pod.node]
        for name, amount in pod.request.items():
            taken[name] += sign * amount
        taken[PODS] += sign
        self._touch(pod.node, is_shared=True)

    def has_room(self, pod: QuotaPod, node: str) -> bool:
        return self.has_room_for([PlacedPod(pod, node)])

    def has_room_for(self, seats: Iterable[PlacedPod]) -> bool:
        """Whether these pods fit beside each other, as kube-scheduler counts."""
        asked: defaultdict[str, defaultdict[str, int]] = defaultdict(lambda: defaultdict(int))
        for seat in seats:
            for name, amount in (*seat.pod.request.items(), (PODS, 1)):
                asked[seat.node][name] += amount
            if seat.pod.card_units and seat.card < 0 and not self._has_hole(seat.pod, seat.node):
                return False
        for node, amounts in asked.items():
            span, used = self._spans.get(node), self._used[node]
            if span is None or not span.room.is_schedulable:
                return False
            has = span.room.allocatable
            if any(
                used[name] + amount > has.get(name, 0)
                for name, amount in amounts.items()
                if amount and (name != PODS or PODS in has)
            ):
                return False
        return True

    def _has_hole(self, pod: QuotaPod, node: str) -> bool:
        span = self._spans.get(node)
        holes = self._room(span).holes if span is not None else ()
        return not holes or max(holes) >= pod.card_units

    def _use(self, pod: QuotaPod, sign: int) -> None:
        used = self._used[pod.node]
        for name, amount in pod.request.items():
            used[name] += sign * amount
        used[PODS] += sign

    def _touch(self, node: str, *, is_shared: bool) -> None:
        if is_shared and node in self._spans:
            self._stale.add(node)

    def _room(self, span: NodeSpan) -> NodeRoom:
        room = span.room
        taken = {key: amount for key, amount in self._taken[room.name].items() if amount}
        holes = list(room.holes)
        for card, units in self._on[room.name].values() if holes else ():
            if card >= 0:
                holes[card] -= units
        return replace(room, taken=taken, holes=tuple(holes)) if taken or holes else room
