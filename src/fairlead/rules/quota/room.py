"""Whether units fit on the cluster's nodes (docs/spec/quota.md#room-for-a-unit).

Requests, labels, taints, and GPU memory of one card are compared. What cannot be judged here
(volumes, spread, other pods) counts as fitting: kube-scheduler decides. Pods are laid out first
fit: nodes by name, the largest pod of a unit first. A unit that would fit only in another layout
counts as one that does not fit, until something moves.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct, field

from fairlead.model.moment import Moment
from fairlead.model.node import Node
from fairlead.model.node_choice import NodeChoice
from fairlead.model.pod import Pod
from fairlead.model.quota.state import NodeRoom, QuotaPod
from fairlead.model.resources import GPU_MEMORY, PODS, Amounts, counted, sum_of
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.rules.holding.account import account
from fairlead.rules.nodes.choice import may_use_labelled

SILENT_SECONDS: Final = 300.0
"""`SILENT_SECONDS`: for this time a node that is not ready still counts."""
_PLENTY: Final = ("memory", "cpu")
_SHAPES_MAX: Final = 2_000


def node_rooms(
    snapshot: ClusterSnapshot, counted_uids: Collection[str], now: Moment
) -> tuple[NodeRoom, ...]:
    """The snapshot's nodes.

    `counted_uids`: pods that quota counts; the requests of all others are taken.
    """
    rooms: list[NodeRoom] = []
    for node in snapshot.nodes:
        bound = [pod for pod in snapshot.pods_on(node.name) if pod.is_holding]
        strange = [pod for pod in bound if pod.uid not in counted_uids]
        rooms.append(
            node_room(
                node,
                taken_by(strange),
                holes_of(node, bound, snapshot.withheld.get(node.name, ())),
                now,
            )
        )
    return tuple(rooms)


def node_room(node: Node, taken: Amounts, holes: tuple[int, ...], now: Moment) -> NodeRoom:
    return NodeRoom(
        node.name,
        node.allocatable,
        taken,
        node.labels,
        node.taints,
        is_schedulable(node, now),
        holes,
    )


def taken_by(pods: Iterable[Pod]) -> Amounts:
    """What these bound pods take of their node, with one place for each pod."""
    return sum_of(part for pod in pods for part in (pod.requests, _ONE))


def holes_of(node: Node, pods: Iterable[Pod], withheld: Collection[int] = ()) -> tuple[int, ...]:
    """Free units of GPU memory of each shared card; () where the cards are not known one by one."""
    if not counted(node.capacity, GPU_MEMORY):
        return ()
    found = account(node, pods, withheld=withheld)
    return tuple(card.free for card in found.usable()) if found.mode.is_shared else ()


def is_schedulable(node: Node, now: Moment) -> bool:
    """Whether the node is not cordoned, and is ready or became not ready within five minutes.

    For a node that never reported, the five minutes begin with its creation.
    """
    if node.unschedulable:
        return False
    ready = next((each for each in node.conditions if each.type == "Ready"), None)
    if ready is not None and ready.status == "True":
        return True
    since = node.created_at if ready is None else ready.at
    return since is None or now - since < SILENT_SECONDS


_ONE: Final[Amounts] = {PODS: 1}
Shape = tuple[tuple[tuple[str, int], ...], NodeChoice, int]
"""What decides where a pod fits: its requests, the nodes that it may use, GPU memory on one card.
"""


class PlacedPod(Struct, frozen=True, gc=False):
    """A pod, its node, and the card of the node that gives it memory; -1: none."""

    pod: QuotaPod
    node: str
    card: int = -1


class _Fit(Struct):
    """Where pods of one shape fit. `usable`: by place, whether they may use the node. Below the
    place `below` only nodes in `reopened` may have room.
    """

    usable: list[bool]
    below: int = 0
    reopened: set[int] = field(default_factory=set)


class _Room(Struct, gc=False):
    """One node. `gives`: by resource, what it has for pods that quota counts, and whether it offers
    any, when last computed.
    """

    node: NodeRoom
    free: dict[str, int]
    holes: list[int]
    gives: tuple[tuple[int, bool], ...] = ()


class Rooms:
    """The nodes of a cluster with the pods on them that quota counts, and what is free.

    Repeated questions are cheap: for each shape of pod it is known below which node there is no
    room, and which of those nodes got some room back since.
    """

    def __init__(self, nodes: Iterable[NodeRoom], pods: Iterable[QuotaPod] = ()) -> None:
        """Admitted pods take room on their node.

        Pods that are not bound yet come after the bound ones, and take the first node that fits; a
        pod that fits nowhere takes none.
        """
        self._rooms = [
            _Room(
                node,
                {
                    name: amount - node.taken.get(name, 0)
                    for name, amount in node.allocatable.items()
                },
                list(node.holes),
            )
            for node in sorted(nodes, key=lambda each: each.name)
        ]
        self._place = {room.node.name: place for place, room in enumerate(self._rooms)}
        self._usable: dict[NodeChoice, list[bool]] = {}
        self._fits: dict[Shape, _Fit] = {}
        self._nodes: tuple[NodeRoom, ...] = ()
        """Those of the last `follow`."""
        self._resources: tuple[str, ...] = ()
        self._total: list[int] = []
        self._offering: list[int] = []
        self._unreckoned: set[int] = set()
        self._unbound: dict[str, QuotaPod] = {}
        self._unbound_seats: list[PlacedPod] = []
        for pod in pods:
            self._put(pod)
        self._seat_unbound()

    def follow(
        self,
        nodes: tuple[NodeRoom, ...],
        moved: Iterable[tuple[QuotaPod | None, QuotaPod | None]],
    ) -> bool:
        """Follow the cluster: `moved` are the pods that changed, each as it was and as it is.

        Returns False if there are other nodes, or other resources on a node: then make it anew.
        """
        changed = [
            node
            for node in (nodes if nodes is not self._nodes else ())
            if (at := self._place.get(node.name)) is None or self._rooms[at].node is not node
        ]
        if len(nodes) != len(self._rooms) or any(node.name not in self._place for node in changed):
            return False
        if any(
            node.allocatable.keys() != self._rooms[self._place[node.name]].node.allocatable.keys()
            for node in changed
        ):
            return False
        self._nodes = nodes
        self.unseat(self._unbound_seats)
        for before, now in moved:
            self._drop(before)
            self._put(now)
        for node in changed:
            self._turn(self._rooms[self._place[node.name]], node)
            self._unreckoned.add(self._place[node.name])
        self._seat_unbound()
        return True

    def capacity(
        self, resources: tuple[str, ...], lost: Iterable[QuotaPod] = ()
    ) -> tuple[int | None, ...]:
        """What schedulable nodes have for pods that quota counts.

        None: no node offers the resource.

        A node counts with at least what such pods hold on it, so pods on a cordoned node, or on a
        node whose device plugin is away for a moment, take nothing from the others. `lost` pods
        hold nothing. Call it only while nothing but the cluster's pods is laid out.
        """
        if resources != self._resources:
            self._resources, self._unreckoned = resources, set(range(len(self._rooms)))
            self._total, self._offering = [0] * len(resources), [0] * len(resources)
            for room in self._rooms:
                room.gives = ((0, False),) * len(resources)
        for place in self._unreckoned:
            room = self._rooms[place]
            gives = tuple([_gives(room, resource) for resource in resources])
            for k, ((now, offers), (before, offered)) in enumerate(
                zip(gives, room.gives, strict=True)
            ):
                self._total[k] += now - before
                self._offering[k] += offers - offered
            room.gives = gives
        self._unreckoned.clear()
        total, gone = list(self._total), defaultdict[int, list[Amounts]](list)
        for pod in lost:
            if (at := self._place.get(pod.node)) is not None:
                gone[at].append(pod.request)
        for at, requests in gone.items():
            for k, resource in enumerate(resources):
                less = sum(request.get(resource, 0) for request in requests)
                total[k] += _gives(self._rooms[at], resource, less)[0] - self._rooms[at].gives[k][0]
        return tuple(
            amount if offering else None
            for amount, offering in zip(total, self._offering, strict=True)
        )

    def fits(self, pods: Sequence[QuotaPod]) -> bool:
        """Whether all of these pods fit beside each other."""
        seats = self.seat(pods)
        if seats is None:
            return False
        self.unseat(seats)
        return True

    def seat(self, pods: Sequence[QuotaPod], *, is_whole: bool = True) -> list[PlacedPod] | None:
        """Lay the pods out and take their room. None: they do not fit, and nothing is taken.

        Not `is_whole`: the pods that fit are laid out.
        """
        in_order = pods if len(pods) == 1 else sorted(pods, key=largest_first)
        return self.seat_in_order(in_order, is_whole=is_whole)

    def seat_in_order(
        self, pods: Iterable[QuotaPod], *, is_whole: bool = True
    ) -> list[PlacedPod] | None:
        """The same of pods that are in the order of `largest_first`."""
        seats: list[PlacedPod] = []
        for pod in pods:
            place = self._first(pod)
            if place is not None:
                card = self._card_for(pod, place)
                self._take(pod, place, card)
                seats.append(PlacedPod(pod, self._rooms[place].node.name, card))
            elif is_whole:
                self.unseat(seats)
                return None
        return seats

    def seat_on(self, pod: QuotaPod, node: str) -> list[PlacedPod] | None:
        """Lay one pod out on this node."""
        place = self._place[node]
        if not self._may_use(pod.choice)[place] or not self._has_room(pod, place):
            return None
        card = self._card_for(pod, place)
        self._take(pod, place, card)
        return [PlacedPod(pod, node, card)]

    def could_hold(self, pod: QuotaPod, node: str) -> bool:
        """Whether the pod would fit on the node if no pod that quota counts were on it.

        The cards of a node count as alike.
        """
        room = self._rooms[self._place[node]].node
        if pod.card_units * len(room.holes) > room.allocatable.get(GPU_MEMORY, 0):
            return False
        return all(
            amount <= room.allocatable.get(name, 0) - room.taken.get(name, 0)
            for name, amount in pod.request.items()
            if amount
        )

    def lack_on(self, pod: QuotaPod, node: str) -> Mapping[str, int]:
        """How much more room the pod needs on the node, by resource; empty: it fits."""
        room = self._rooms[self._place[node]]
        free = room.free
        lack = {
            name: amount - free.get(name, 0)
            for name, amount in pod.request.items()
            if amount and amount > free.get(name, 0)
        }
        if PODS in free and free[PODS] < 1:
            lack[PODS] = 1 - free[PODS]
        if not lack and pod.card_units and room.holes and max(room.holes) < pod.card_units:
            lack[GPU_MEMORY] = pod.card_units - max(room.holes)
        return lack

    def unseat(self, seats: Iterable[PlacedPod]) -> None:
        """Return the room that `seat` took."""
        for seat in seats:
            self._give(seat.pod, self._place[seat.node], seat.card)

    def leave(self, pods: Iterable[QuotaPod]) -> list[PlacedPod]:
        """Bound pods return the room of their nodes, until `stay`.

        It is not known here which card a pod holds. The card with most free memory is assumed, so
        that no room is judged too small that may be large enough.
        """
        seats: list[PlacedPod] = []
        for pod in pods:
            if (place := self._place.get(pod.node)) is not None:
                holes = self._rooms[place].holes
                card = holes.index(max(holes)) if pod.card_units and holes else -1
                self._give(pod, place, card)
                seats.append(PlacedPod(pod, pod.node, card))
        return seats

    def stay(self, seats: Iterable[PlacedPod]) -> None:
        """Take back the room that `leave` returned."""
        for seat in seats:
            self._take(seat.pod, self._place[seat.node], seat.card)

    def fits_on(self, pod: QuotaPod, node: str, without: Sequence[QuotaPod] = ()) -> bool:
        """Whether the pod fits on the node.

        `without`: these pods of the node are gone. The cards count as one pool.
        """
        place = self._place.get(node)
        if place is None or not self._may_use(pod.choice)[place]:
            return False
        if not without:
            return self._has_room(pod, place)
        free = self._rooms[place].free
        return all(
            amount <= free.get(name, 0) + sum(part_of(each, name) for each in without)
            for name, amount in (
                (*pod.request.items(), (PODS, 1)) if PODS in free else pod.request.items()
            )
            if amount
        )

    def nodes_for(self, pod: QuotaPod) -> list[str]:
        """The nodes that the pod may use, whatever room they have."""
        usable = self._may_use(pod.choice)
        return [room.node.name for place, room in enumerate(self._rooms) if usable[place]]

    def freest(self, pod: QuotaPod) -> tuple[str, str, int, int] | None:
        """For the sentence of a pod that fits nowhere: what is missing on the freest node, that
        node, the free amount there, and how many nodes the pod may use. None: it may use none.
        """
        usable = self._may_use(pod.choice)
        places = [place for place in range(len(self._rooms)) if usable[place]]
        if not places:
            return None
        free = {place: self._rooms[place].free for place in places}
        lack = {
            place: sorted(
                (name for name, amount in pod.request.items() if amount > free[place].get(name, 0)),
                reverse=True,
            )
            for place in places
        }
        best = min(
            places,
            key=lambda place: (
                len(lack[place]),
                -sum(free[place].get(name, 0) for name in lack[place]),
            ),
        )
        if lack[best]:
            name = lack[best][0]
            return name, self._rooms[best].node.name, max(0, free[best].get(name, 0)), len(places)
        if pod.card_units:
            best = max(places, key=lambda place: max(self._rooms[place].holes, default=0))
            return (
                GPU_MEMORY,
                self._rooms[best].node.name,
                max((0, *self._rooms[best].holes)),
                len(places),
            )
        return PODS, self._rooms[best].node.name, max(0, free[best].get(PODS, 0)), len(places)

    # --- the cluster's pods -----------------------------------------------------------------------

    def _put(self, pod: QuotaPod | None) -> None:
        if pod is None or not pod.is_admitted:
            return
        if (place := self._place.get(pod.node)) is not None:
            self._take(pod, place)
            self._unreckoned.add(place)
        elif not pod.node and not pod.is_stopping:
            self._unbound[pod.uid or pod.key] = pod

    def _drop(self, pod: QuotaPod | None) -> None:
        if pod is None or not pod.is_admitted:
            return
        if (place := self._place.get(pod.node)) is not None:
            self._give(pod, place, -1)
            self._unreckoned.add(place)
        else:
            self._unbound.pop(pod.uid or pod.key, None)

    def _seat_unbound(self) -> None:
        self._unbound_seats = []
        for pod in sorted(self._unbound.values(), key=lambda pod: (pod.key, pod.uid)):
            self._unbound_seats += self.seat([pod], is_whole=False) or ()

    def _turn(self, room: _Room, node: NodeRoom) -> None:
        """Note that the node has changed."""
        old = room.node
        for name, amount in node.allocatable.items():
            less = old.allocatable[name] - old.taken.get(name, 0)
            room.free[name] += amount - node.taken.get(name, 0) - less
        room.node, room.holes = node, list(node.holes)
        self._usable.clear()
        self._fits.clear()

    # --- one pod ----------------------------------------------------------------------------------

    def _first(self, pod: QuotaPod) -> int | None:
        """The first node that has room for the pod."""
        shape = shape_of(pod)
        fit = self._fits.get(shape)
        if fit is None:
            if len(self._fits) >= _SHAPES_MAX:
                self._fits.clear()
            fit = self._fits[shape] = _Fit(self._may_use(pod.choice))
        usable, reopened = fit.usable, fit.reopened
        while reopened:
            place = min(reopened)
            if usable[place] and self._has_room(pod, place):
                return place
            reopened.remove(place)
        for place in range(fit.below, len(self._rooms)):
            if usable[place] and self._has_room(pod, place):
                fit.below = place
                return place
        fit.below = len(self._rooms)
        return None

    def _may_use(self, choice: NodeChoice) -> list[bool]:
        found = self._usable.get(choice)
        if found is None:
            found = self._usable[choice] = [
                room.node.is_schedulable
                and may_use_labelled(choice, room.node.name, room.node.labels, room.node.taints)
                for room in self._rooms
            ]
        return found

    def _has_room(self, pod: QuotaPod, place: int) -> bool:
        room = self._rooms[place]
        free = room.free
        for name, amount in pod.request.items():
            if amount > free.get(name, 0) and amount:
                return False
        if PODS in free and free[PODS] < 1:
            return False
        return not pod.card_units or not room.node.holes or max(room.holes) >= pod.card_units

    def _card_for(self, pod: QuotaPod, place: int) -> int:
        """The card with the smallest free part that fits the pod."""
        holes = self._rooms[place].holes
        if not pod.card_units or not holes:
            return -1
        return min((hole, card) for card, hole in enumerate(holes) if hole >= pod.card_units)[1]

    def _take(self, pod: QuotaPod, place: int, card: int = -1) -> None:
        room = self._rooms[place]
        self._move(pod, room, -1)
        if card >= 0:
            room.holes[card] -= pod.card_units

    def _give(self, pod: QuotaPod, place: int, card: int) -> None:
        room = self._rooms[place]
        self._move(pod, room, 1)
        if card >= 0:
            room.holes[card] += pod.card_units
        for fit in self._fits.values():
            if place < fit.below:
                fit.reopened.add(place)

    def _move(self, pod: QuotaPod, room: _Room, sign: int) -> None:
        free = room.free
        for name, amount in pod.request.items():
            if amount:
                free[name] = free.get(name, 0) + sign * amount
        if PODS in free:
            free[PODS] += sign


def part_of(pod: QuotaPod, resource: str) -> int:
    """What the pod takes of a node's room."""
    return 1 if resource == PODS else pod.request.get(resource, 0)


def _gives(room: _Room, resource: str, lost: int = 0) -> tuple[int, bool]:
    node = room.node
    there = (
        node.allocatable.get(resource, 0) - node.taken.get(resource, 0)
        if resource in node.allocatable
        else 0
    )
    held = there - room.free.get(resource, 0) - lost
    if not node.is_schedulable:
        return max(0, held), False
    return max(0, there, held), node.allocatable.get(resource, 0) > 0


def shape_of(pod: QuotaPod) -> Shape:
    return tuple(sorted(pod.request.items())), pod.choice, pod.card_units


def largest_first(pod: QuotaPod) -> tuple[object, ...]:
    """Sort key: GPUs and their memory before cpu and memory, of which nodes have most."""
    asked = pod.request
    return (
        -pod.card_units,
        tuple(sorted((name, -amount) for name, amount in asked.items() if name not in _PLENTY)),
        *(-asked.get(name, 0) for name in _PLENTY),
        pod.key,
    )
