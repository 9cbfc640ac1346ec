"""Which cell of the GPU map has which state? One card, one cell, in the order of nodes and indexes.

A newcomer's mistake: painting a card free because no holder is known. Where pods hold GPUs of a node and nobody can say which,
its seemingly free cards are unknown, unless the cards have no identity or all of them must be taken.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from fairlead.console.gpu_map import ALLOCATED, DRAINING, FREE, SHARED, UNHEALTHY, UNKNOWN, Cell, MapNode, Slice
from fairlead.model.occupancy import CardOccupancy, NodeOccupancy
from fairlead.model.pod import Pod
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.rules.cluster_occupancy import ClusterOccupancy
from fairlead.rules.node_status import gpu_model, is_ready, status_word
from fairlead.rules.pod_devices import whole_gpus

_WHOLE_MODES: Final = ("exclusive", "topology")


class Numbering:
    """Names to small numbers, in the order first met."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def of(self, name: str) -> int:
        return self._numbers.setdefault(name, len(self._numbers))

    @property
    def names(self) -> list[str]:
        return list(self._numbers)


def map_nodes(snapshot: ClusterSnapshot, occupancy: ClusterOccupancy, now: float) -> tuple[list[str], list[str], list[MapNode]]:
    """Teams, models and nodes of the map."""
    teams, models = Numbering(), Numbering()
    nodes = [
        MapNode(
            name=each.node.name,
            model=models.of(gpu_model(each.node, snapshot)),
            mode=each.mode,
            status=status_word(each.node),
            gpus=_cells(each, teams, now),
        )
        for each in occupancy.nodes
    ]
    return teams.names, models.names, nodes


def idle_seconds(card: CardOccupancy, now: float) -> int | None:
    """How long the card's utilisation has been below 1 %; None when it is busy or nobody knows."""
    since = card.reading.idle_since if card.reading else None
    return None if since is None else max(0, int(now - since))


def withheld_gpus(occupied: NodeOccupancy) -> int:
    """GPUs that the node does not offer though it has them, beyond the cards that are known to be broken."""
    return max(0, occupied.gpus_unhealthy - sum(card.is_healthy is False for card in occupied.cards))


def _cells(occupied: NodeOccupancy, teams: Numbering, now: float) -> list[Cell]:
    claims = _unplaced_claims(occupied)
    is_known = is_ready(occupied.node)
    cells = [_cell(card, claims.get(card.index), is_known, teams, now) for card in occupied.cards]
    withheld = withheld_gpus(occupied)
    return _with_withheld(cells, withheld) if withheld and is_known and _are_nameless(occupied.cards) else cells


def _with_withheld(cells: list[Cell], withheld: int) -> list[Cell]:
    """The last free cells as unhealthy: of cards without identity only their number is known."""
    for place in reversed(range(len(cells))):
        if withheld and cells[place][1] == FREE:
            cells[place] = (cells[place][0], UNHEALTHY, *cells[place][2:])
            withheld -= 1
    return cells


def _cell(card: CardOccupancy, claim: Pod | str | None, is_known: bool, teams: Numbering, now: float) -> Cell:
    slices: list[Slice] = [(teams.of(holder.pod.namespace), _share(holder.ratio)) for holder in card.holders]
    if isinstance(claim, Pod):
        slices = [(teams.of(claim.namespace), 1)]
    reading = card.reading
    used = reading.memory_used_mib if reading else None
    return (
        card.index,
        _state(card, claim, is_known),
        _whole(reading.utilization_ratio * 100 if reading and reading.utilization_ratio is not None else None),
        _whole(100 * used / card.memory_total_mib if used is not None and card.memory_total_mib else None),
        _whole(reading.temperature_celsius if reading else None),
        idle_seconds(card, now),
        slices,
    )


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
    """Card index -> the pod that must be there, or `unknown`, for whole GPUs held by pods that no grant or reading seats."""
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
    """Whole numbers keep 40,000 cells within a megabyte, and a cell's colour has no more steps than that."""
    return None if value is None or not math.isfinite(value) else round(value)
