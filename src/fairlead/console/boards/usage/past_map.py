"""The GPU map of another moment: its nodes hold here, too, where nothing has changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from fairlead.console.boards.gpu_map_cells import MapNumbers, Numbering
from fairlead.console.pages.gpu_map import Cell, MapNode
from fairlead.model.occupancy import NodeOccupancy
from fairlead.rules.holding.occupancy import ClusterOccupancy


class _Map(Protocol):
    """`MapParts` or `GpuMap`."""

    @property
    def teams(self) -> list[str]: ...
    @property
    def models(self) -> list[str]: ...
    @property
    def modes(self) -> list[str]: ...
    @property
    def statuses(self) -> list[str]: ...
    @property
    def nodes(self) -> list[MapNode]: ...


class KnownMap:
    """A map and the occupancy that it was made from."""

    def __init__(self, occupancy: ClusterOccupancy, made: _Map) -> None:
        self._occupied = occupancy.by_node
        self._made = made
        self._nodes = {node.name: node for node in made.nodes}

    def node(self, on: NodeOccupancy, numbers: MapNumbers) -> MapNode | None:
        """The node with the numbers of the map that is being made; None if its occupancy is another
        object, or has times, which grow.
        """
        name, made = on.node.name, self._made
        if self._occupied.get(name) is not on or _has_times(on):
            return None
        known = self._nodes[name]
        return MapNode(
            name=name,
            model=numbers.models.of(made.models[known.model]),
            mode=numbers.modes.of(made.modes[known.mode]),
            status=numbers.statuses.of(made.statuses[known.status]),
            gpus=_renumbered(known.gpus, made.teams, numbers.teams),
            indexes=known.indexes,
        )


def _has_times(on: NodeOccupancy) -> bool:
    for card in on.cards:
        if card.reading is not None and card.reading.idle_since is not None:
            return True
    return False


def _renumbered(cells: Sequence[Cell], names: Sequence[str], teams: Numbering) -> list[Cell]:
    """The cells with the numbers that `map_cells` would give. `names`: of their present numbers."""
    found: list[Cell] = []
    for cell in cells:
        held = cell[-1]
        shown = (
            teams.of(names[held])
            if isinstance(held, int)
            else [(teams.of(names[team]), share) for team, share in held]
        )
        found.append(cell if shown == held else (*cell[:-1], shown))
    return found
