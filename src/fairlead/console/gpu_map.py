"""Where is every GPU, who has it, how busy is it? The compact answer behind the GPU map.

Cells are arrays, not objects, because 40,000 of them must fit into one megabyte; teams and models are indexes into
the two lists at the top.
"""

from __future__ import annotations

from typing import Final

from fairlead.console.envelope import Answer, Json

FREE, ALLOCATED, SHARED, UNHEALTHY, DRAINING, UNKNOWN = range(6)
STATES: Final = ("free", "allocated", "shared", "unhealthy", "draining", "unknown")

Slice = tuple[int, float]
"""(index into `teams`, share of the card's memory 0..1)."""

Cell = tuple[int, int, float | None, float | None, float | None, int | None, list[Slice]]
"""(index, state, utilPercent, memoryUsedPercent, temperatureC, idleSeconds, slices)."""


class MapNode(Json, frozen=True):
    """`model` is an index into `models`."""

    name: str
    model: int
    mode: str
    status: str
    gpus: list[Cell]


class GpuMap(Answer, frozen=True):
    """`teams` are namespaces. State numbers: 0 free, 1 allocated, 2 shared, 3 unhealthy, 4 draining, 5 unknown."""

    teams: list[str]
    models: list[str]
    nodes: list[MapNode]
