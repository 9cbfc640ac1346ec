"""The compact answer behind the GPU map: where every GPU is, who has it, how busy it is.

Nodes and cells are arrays, not objects, and words stand once in the lists at the top, because
40,000 cells must fit into one megabyte. A cell's place is not its GPU's index where the node has
`indexes`.
"""

from __future__ import annotations

from typing import Final

from fairlead.console.pages.envelope import Envelope, Json

FREE, ALLOCATED, SHARED, UNHEALTHY, DRAINING, UNKNOWN, CLOSED, UNREACHABLE = range(8)
STATES: Final = (
    "free",
    "allocated",
    "shared",
    "unhealthy",
    "draining",
    "unknown",
    "closed",
    "unreachable",
)

Slice = tuple[int, float]
"""(index into `teams`, share of the card's memory 0..1)."""

Cell = tuple[int, float | None, float | None, float | None, int, int | list[Slice]]
"""(state, utilPercent, memoryUsedPercent, temperatureC, idleSeconds, holders).

`idleSeconds` is 0 if the card is busy or unknown. `holders`: the team that has the whole card, else
the slices.
"""


class MapNode(Json, frozen=True, array_like=True):
    """Name, then indexes into `models`, `modes` and `statuses`, the cells, and the indexes of their
    GPUs.

    `indexes` is empty when they are 0, 1, 2, …
    """

    name: str
    model: int
    mode: int
    status: int
    gpus: list[Cell]
    indexes: list[int]


class GpuMap(Envelope, frozen=True):
    """`teams` are namespaces.

    State numbers: 0 free, 1 allocated, 2 shared, 3 unhealthy, 4 draining, 5 unknown (who holds it),
    6 closed (without a holder, on a node that is cordoned or not ready), 7 unreachable (its node
    does not report).
    """

    teams: list[str]
    models: list[str]
    modes: list[str]
    statuses: list[str]
    nodes: list[MapNode]
