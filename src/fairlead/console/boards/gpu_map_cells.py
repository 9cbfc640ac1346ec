"""The cells of the GPU map and their states: one card, one cell, in the order of nodes and indexes.

A card is not free because no holder is known. Where pods hold GPUs of a node and nobody can say which, its
seemingly free cards are unknown, unless the cards have no identity or all of them must be taken.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from fairlead.console.pages.gpu_map import ALLOCATED, DRAINING, FREE, SHARED, UNHEALTHY, UNKNOWN, Cell, MapNode, Slice
from fairlead.model.devices.gpu import GpuMode
from fairlead.model.occupancy import CardOccupancy, NodeOccupancy
from fairlead.model.pod import Pod
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.rules.holding.occupancy import ClusterOccupancy
from fairlead.rules.nodes.status import gpu_model, is_ready, status_word
from fairlead.rules.pods.devices import whole_gpus

_WHOLE_MODES: Final = (GpuMode.EXCLUSIVE, GpuMode.TOPOLOGY)


class Numbering:
    """Names to small numbers, in the order first met."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def of(self, name: str) -> int:
        return self._numbers.setdefault(name, len(self._numbers))

    @property
    def names(self) -> list[str]:
        return list(self._numbers)


class MapParts(Struct, frozen=True):
    """The nodes of the map, and the lists that their numbers point into."""

    teams: list[str]
    models: list[str]
    modes: list[str]
    statuses: list[str]
    nodes: list[MapNode]


class SeenCard(Struct, frozen=True, gc=False):
    """A card with its state. `claimant`: the pod that must be on it though no grant or reading says so."""

    card: CardOccupancy
    state: int
    claimant: Pod | None = None


def map_parts(snapshot: ClusterSnapshot, occupancy: ClusterOccupancy, now: float) -> MapParts:
    """All that the map shows: GPU nodes in the occupancy's order, and the words behind their numbers."""
    teams, models, modes, statuses = Numbering(), Numbering(), Numbering(), Numbering()
    nodes = [
        MapNode(
            name=each.node.name,
            model=models.of(gpu_model(each.node, snapshot)),
            mode=modes.of(each.mode),
            status=statuses.of(status_word(each.node)),
            gpus=[_cell(seen, teams, now) for seen in seen_cards(each)],
            indexes=_odd_indexes(each.cards),
        )
        for each in occupancy.nodes
    ]
    return MapParts(teams.names, models.names, modes.names, statuses.names, nodes)


def seen_cards(occupied: NodeOccupancy) -> list[SeenCard]:
    """The node's cards in their order, each with the state that the map shows."""
    claims = _unplaced_claims(occupied)
    is_known = is_ready(occupied.node)
    cards = [_seen_card(card, claims.get(card.index), is_known) for card in occupied.cards]
    withheld = withheld_gpus(occupied)
    return _with_withheld(cards, withheld) if withheld and is_known and _are_nameless(occupied.cards) else cards


def idle_seconds(card: CardOccupancy, now: float) -> int | None:
    """How long the card's utilisation has been below 1 %; None when it is busy or nobody knows."""
    since = card.reading.idle_since if card.reading else None
    return None if since is None else max(0, int(now - since))


def withheld_gpus(occupied: NodeOccupancy) -> int:
    """GPUs that the node does not offer though it has them, beyond the cards that are known to be broken."""
    return max(0, occupied.gpus_unhealthy - sum(card.is_healthy is False for card in occupied.cards))


def _with_withheld(cards: list[SeenCard], withheld: int) -> list[SeenCard]:
    """The last free cards as unhealthy: of cards without identity only their number is known."""
    for place in reversed(range(len(cards))):
        if withheld and cards[place].state == FREE:
            cards[place] = SeenCard(cards[place].card, UNHEALTHY)
            withheld -= 1
    return cards


def _seen_card(card: CardOccupancy, claim: Pod | str | None, is_known: bool) -> SeenCard:
    return SeenCard(card, _state(card, claim, is_known), claim if isinstance(claim, Pod) else None)


def _cell(seen: SeenCard, teams: Numbering, now: float) -> Cell:
    card, reading = seen.card, seen.card.reading
    used = reading.memory_used_mib if reading else None
    return (
        seen.state,
        _whole(reading.utilization_ratio * 100 if reading and reading.utilization_ratio is not None else None),
        _whole(100 * used / card.memory_total_mib if used is not None and card.memory_total_mib else None),
        _whole(reading.temperature_celsius if reading else None),
        idle_seconds(card, now) or 0,
        _holders(seen, teams),
    )


def _holders(seen: SeenCard, teams: Numbering) -> int | list[Slice]:
    if seen.claimant is not None:
        return teams.of(seen.claimant.namespace)
    slices = [(teams.of(holder.pod.namespace), _share(holder.ratio)) for holder in seen.card.holders]
    return slices[0][0] if len(slices) == 1 and slices[0][1] == 1 else slices


def _odd_indexes(cards: Sequence[CardOccupancy]) -> list[int]:
    indexes = [card.index for card in cards]
    return [] if indexes == list(range(len(indexes))) else indexes


def _state(card: CardOccupancy, claim: Pod | str | None, is_known: bool) -> int:
    if card.is_healthy is False:
        return UNHEALTHY
    if card.is_draining:
        return DRAINING
    if not is_known or claim == "unknown":
        return UNKNOWN
    if isinstance(claim, Pod):
        return ALLOCATED
    if not card.holders:
        return FREE
    return ALLOCATED if any(holder.mode in _WHOLE_MODES for holder in card.holders) else SHARED


def _unplaced_claims(occupied: NodeOccupancy) -> dict[int, Pod | str]:
    """Card index -> the pod that must be there, or `unknown`.

    For whole GPUs held by pods that no grant or reading seats.
    """
    wanted = [pod for pod in occupied.unplaced for _ in range(min(whole_gpus(pod.limits), len(occupied.cards)))]
    free = [card for card in occupied.cards if not card.holders and card.is_healthy is not False and not card.is_draining]
    if not wanted or not free:
        return {}
    if len(wanted) >= len(free) or _are_nameless(free):
        return {card.index: pod for card, pod in zip(free, wanted, strict=False)}
    return {card.index: "unknown" for card in free}


def _are_nameless(cards: Sequence[CardOccupancy]) -> bool:
    return not any(card.uuid for card in cards)


def _share(ratio: float) -> float:
    return 1 if ratio >= 1 else round(ratio, 2)


def _whole(value: float | None) -> int | None:
    """The value as a whole number.

    Whole numbers keep 40,000 cells within a megabyte, and a cell's colour has no more steps than that.
    """
    return None if value is None or not math.isfinite(value) else round(value)
