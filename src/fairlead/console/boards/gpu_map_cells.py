"""The cells of the GPU map and their states: one card, one cell, in the order of nodes and indexes.

A card without a known holder is not necessarily free. If pods hold unknown GPUs of a node, its
seemingly free cards are `unknown`, unless the cards have no identity or all of them must be taken.
Cards of a node that is cordoned, not ready or unreachable are not free, because no pod can get
them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from msgspec import Struct

from fairlead.console.boards.idle_cards import card_idle_seconds
from fairlead.console.boards.rows import by_count
from fairlead.console.pages.gpu_map import (
    ALLOCATED,
    CLOSED,
    DRAINING,
    FREE,
    SHARED,
    UNHEALTHY,
    UNKNOWN,
    UNREACHABLE,
    Cell,
    MapNode,
    Slice,
)
from fairlead.model.devices.gpu import GpuMode
from fairlead.model.node import Node
from fairlead.model.occupancy import CardOccupancy, NodeOccupancy
from fairlead.model.pod import Pod
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.rules.holding.occupancy import ClusterOccupancy
from fairlead.rules.nodes.status import gpu_model, is_ready, is_silent, status_word
from fairlead.rules.pods.devices import memory_units, whole_gpus

_WHOLE_MODES: Final = (GpuMode.EXCLUSIVE, GpuMode.TOPOLOGY)


class Numbering:
    """Names to small numbers, in the order first met."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def of(self, name: str) -> int:
        number = self._numbers.get(name)
        if number is None:
            number = self._numbers[name] = len(self._numbers)
        return number

    @property
    def names(self) -> list[str]:
        return list(self._numbers)


class MapNumbers:
    """The numbers of the words of one map."""

    def __init__(self) -> None:
        self.teams, self.models = Numbering(), Numbering()
        self.modes, self.statuses = Numbering(), Numbering()


KnownNode = Callable[[NodeOccupancy, MapNumbers], MapNode | None]
"""The node as another map has it, with the numbers of this one; None if that map has no such node.
"""


class MapParts(Struct, frozen=True):
    """The nodes of the map, and the lists that their numbers point into."""

    teams: list[str]
    models: list[str]
    modes: list[str]
    statuses: list[str]
    nodes: list[MapNode]


class CardState(Struct, frozen=True, gc=False):
    """A card with its state: one account of who has it, for the map, lists and pages.

    `claimant`: the pod that must be on it, without a grant or reading as evidence. `may_be_held`: a
    pod on an unknown card of the node may have it.
    """

    card: CardOccupancy
    state: int
    claimant: Pod | None = None
    may_be_held: bool = False

    @property
    def memory_allocated_mib(self) -> float | None:
        """Granted memory: all of it if there is a claimant; None if unknown."""
        if self.claimant is not None:
            return self.card.memory_total_mib
        return None if self.may_be_held else self.card.memory_allocated_mib


ANOTHER_TEAM: Final = ""
"""The team of pods that are not the reader's."""


def namespace_of(pod: Pod) -> str:
    return pod.namespace


def map_parts(
    snapshot: ClusterSnapshot,
    occupancy: ClusterOccupancy,
    now: float,
    team_of: Callable[[Pod], str] = namespace_of,
    known: KnownNode | None = None,
) -> MapParts:
    """All that the map shows: GPU nodes by name, and the words behind their numbers."""
    numbers = MapNumbers()
    nodes = [
        (known(each, numbers) if known is not None else None)
        or MapNode(
            name=each.node.name,
            model=numbers.models.of(gpu_model(each.node, snapshot)),
            mode=numbers.modes.of(each.mode),
            status=numbers.statuses.of(_status_of(each.node)),
            gpus=map_cells(each, numbers.teams, now, team_of),
            indexes=_irregular_indexes(each.cards),
        )
        for each in in_order(occupancy.nodes)
    ]
    return MapParts(
        numbers.teams.names,
        numbers.models.names,
        numbers.modes.names,
        numbers.statuses.names,
        nodes,
    )


def map_cells(
    on: NodeOccupancy, teams: Numbering, now: float, team_of: Callable[[Pod], str]
) -> list[Cell]:
    """The cells of one node."""
    return [_cell(seen, on.node, teams, now, team_of) for seen in card_states(on)]


def _status_of(node: Node) -> str:
    """In kubectl's words, so that a card that is held on a cordoned node is seen to be on one."""
    return f"{status_word(node)}{',SchedulingDisabled' if node.unschedulable else ''}"


def in_order(nodes: Iterable[NodeOccupancy]) -> list[NodeOccupancy]:
    """By name, as people count them."""
    return sorted(nodes, key=lambda each: by_count(each.node.name))


def card_states(occupied: NodeOccupancy) -> list[CardState]:
    """The node's cards in their order, each with the state that the map shows."""
    wanted = _claimed(occupied)
    claims = _unplaced_claims(occupied, wanted)
    silent, takes_pods = is_silent(occupied.node), is_open(occupied.node)
    # a pod has a card, but it is unknown which
    is_lost = bool(wanted) and not _are_nameless(occupied.cards)
    cards = [
        _card_state(card, claims.get(card.index), is_lost, silent=silent, takes_pods=takes_pods)
        for card in occupied.cards
    ]
    withheld = withheld_gpus(occupied)
    return _with_withheld(cards, withheld) if withheld and is_ready(occupied.node) else cards


def cards_of(pod: Pod, occupancy: ClusterOccupancy) -> list[CardOccupancy]:
    """The cards it is known to sit on, and those with an identity that it must have."""
    seated = [card for card, _ in occupancy.seats(pod)]
    on = occupancy.by_node.get(pod.node)
    if on is None or len({card.index for card in seated}) >= whole_gpus(pod.limits):
        return seated
    claims = _unplaced_claims(on, _claimed(on)) if any(card.uuid for card in on.cards) else {}
    return seated + [
        card
        for card in on.cards
        if card.uuid and isinstance(who := claims.get(card.index), Pod) and who.key == pod.key
    ]


def free_cards(occupied: NodeOccupancy) -> tuple[int, int]:
    """How many cards are free, and how many more of those that are unknown must be.

    If the card of a pod is unknown, some of the node's cards are free, but it is unknown which.
    """
    if not is_open(occupied.node):
        return 0, 0
    states = [seen.state for seen in card_states(occupied)]
    unknown = states.count(UNKNOWN)
    taken = len(_claimed(occupied)) + (
        0 if _are_nameless(occupied.cards) else withheld_gpus(occupied)
    )
    return states.count(FREE), max(0, unknown - taken) if unknown else 0


def is_open(node: Node) -> bool:
    """Whether it takes new pods."""
    return is_ready(node) and not node.unschedulable


def withheld_gpus(occupied: NodeOccupancy) -> int:
    """GPUs that the node does not offer though it has them,
    beyond the cards that are known to be broken.
    """
    return max(
        0, occupied.gpus_unhealthy - sum([card.is_healthy is False for card in occupied.cards])
    )


def _with_withheld(cards: list[CardState], withheld: int) -> list[CardState]:
    """Of cards without identity only their number is known: the last free ones are unhealthy.

    Of others it is unknown which is withheld.
    """
    is_nameless = _are_nameless([seen.card for seen in cards])
    for place in reversed(range(len(cards))):
        if cards[place].state in (FREE, CLOSED) and (withheld or not is_nameless):
            cards[place] = CardState(cards[place].card, UNHEALTHY if is_nameless else UNKNOWN)
            withheld -= 1
    return cards


def _card_state(
    card: CardOccupancy, claim: Pod | str | None, is_lost: bool, *, silent: bool, takes_pods: bool
) -> CardState:
    """The grants of a shared card determine what is held of it,
    even if a pod waits for its own grant.
    """
    claimant = claim if isinstance(claim, Pod) else None
    may_be_held = is_lost and claimant is None and not card.holders and not card.is_divided
    return CardState(
        card, _state(card, claim, silent=silent, takes_pods=takes_pods), claimant, may_be_held
    )


def _cell(
    seen: CardState, on: Node, teams: Numbering, now: float, team_of: Callable[[Pod], str]
) -> Cell:
    card, reading = seen.card, seen.card.reading
    if reading is None:
        return seen.state, None, None, None, 0, _holders(seen, teams, team_of)
    used = reading.memory_used_mib
    return (
        seen.state,
        _whole(reading.utilization_ratio * 100 if reading.utilization_ratio is not None else None),
        _whole(
            100 * used / card.memory_total_mib
            if used is not None and card.memory_total_mib
            else None
        ),
        _whole(reading.temperature_celsius),
        card_idle_seconds(card, on, now) or 0,
        _holders(seen, teams, team_of),
    )


def _holders(seen: CardState, teams: Numbering, team_of: Callable[[Pod], str]) -> int | list[Slice]:
    if seen.claimant is not None:
        return teams.of(team_of(seen.claimant))
    holders = seen.card.holders
    if len(holders) == 1:  # nearly every card
        number, share = teams.of(team_of(holders[0].pod)), _share(holders[0].ratio)
        return number if share == 1 else [(number, share)]
    held = [(team_of(holder.pod), holder.ratio) for holder in holders]
    others = [ratio for team, ratio in held if team == ANOTHER_TEAM]
    if others:  # how many pods other teams have on the card is not shown
        held = [*(each for each in held if each[0]), (ANOTHER_TEAM, sum(others))]
    slices = [(teams.of(team), _share(ratio)) for team, ratio in held]
    return slices[0][0] if len(slices) == 1 and slices[0][1] == 1 else slices


def _irregular_indexes(cards: Sequence[CardOccupancy]) -> list[int]:
    indexes = [card.index for card in cards]
    return [] if indexes == list(range(len(indexes))) else indexes


def _state(card: CardOccupancy, claim: Pod | str | None, *, silent: bool, takes_pods: bool) -> int:
    if card.is_healthy is False:
        return UNHEALTHY
    if silent:
        return UNREACHABLE
    if card.is_draining:
        return DRAINING
    if claim == "unknown":
        return UNKNOWN
    if isinstance(claim, Pod):
        return ALLOCATED
    if not card.holders:
        return FREE if takes_pods else CLOSED
    return ALLOCATED if any(holder.mode in _WHOLE_MODES for holder in card.holders) else SHARED


def _unplaced_claims(occupied: NodeOccupancy, wanted: Sequence[Pod]) -> dict[int, Pod | str]:
    """Card index -> the pod that must be there, or `unknown`.

    For GPUs held by pods that no grant or reading seats: `wanted`, as `_claimed` returns them.
    """
    if not wanted:
        return {}
    free = [
        card
        for card in occupied.cards
        if not card.holders and card.is_healthy is not False and not card.is_draining
    ]
    if not free:
        return {}
    is_share = any(memory_units(pod.limits) for pod in wanted)
    if not is_share and (len(wanted) >= len(free) or _are_nameless(free)):
        return {card.index: pod for card, pod in zip(free, wanted, strict=False)}
    return {card.index: "unknown" for card in free}


def _claimed(occupied: NodeOccupancy) -> list[Pod]:
    """A pod for each unknown card that it holds; a share is on one at least.

    Of some pods a part of their cards is known, as where one of them is not read.
    """
    count = len(occupied.cards)
    unplaced = [
        pod
        for pod in occupied.unplaced
        for _ in range(min(whole_gpus(pod.limits) or bool(memory_units(pod.limits)), count))
    ]
    seated: dict[str, list[Pod]] = {}
    pod, seats = None, list[Pod]()
    for card in occupied.cards:
        for holder in card.holders:
            if holder.mode in _WHOLE_MODES:
                if holder.pod is not pod:  # most pods have several cards in a row
                    pod = holder.pod
                    seats = seated.setdefault(pod.key, [])
                seats.append(pod)
    return unplaced + [
        seats[0]
        for seats in seated.values()
        for _ in range(min(whole_gpus(seats[0].limits) - len(seats), count))
    ]


def _are_nameless(cards: Sequence[CardOccupancy]) -> bool:
    return not any(card.uuid for card in cards)


def _share(ratio: float) -> float:
    return 1 if ratio >= 1 else round(ratio, 2)


def _whole(value: float | None) -> int | None:
    """The value as a whole number.

    Whole numbers keep 40,000 cells within a megabyte, and a cell's colour has no more steps than
    that.
    """
    return None if value is None or not math.isfinite(value) else round(value)
