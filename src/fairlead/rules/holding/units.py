"""Units of GPU memory: their size, how many a card has, and how many MiB a grant has.

Specification: docs/spec/gpu-sharing.md#units-and-the-proportional-grant,
docs/spec/arena-cli.md#share-nodes.

A unit of a card is not 1024 MiB: units are counted by GiB, then the card's whole memory is divided
by them, so a grant is a little larger than its number of units in GiB.
"""

from __future__ import annotations

from typing import Final

from fairlead.model.keys import ANNOTATION_GPU_UNIT
from fairlead.model.node import Node
from fairlead.model.resources import MemoryUnit

GIB: Final = MemoryUnit.GIB
MIB: Final = MemoryUnit.MIB
_UNITS: Final = {each.value: each for each in MemoryUnit}
MIB_PER_UNIT: Final = {GIB: 1024, MIB: 1}
_MOST_GIB: Final = 1024
"""`_MOST_GIB`: a card with more units counts in MiB, if its node does not declare the unit."""


def unit_of(node: Node, units_per_card: float) -> MemoryUnit:
    """The unit in which the node counts: the declared one, else GiB.

    If it is not declared and a card has more units than GiB can explain, MiB.

    >>> print(unit_of(Node("n"), 139), unit_of(Node("n"), 32260 / 2))
    GiB MiB
    """
    declared = _UNITS.get(node.annotations.get(ANNOTATION_GPU_UNIT, ""))
    return declared or (MIB if units_per_card > _MOST_GIB else GIB)


def card_units(memory_mib: int, unit: MemoryUnit = GIB) -> int:
    """Units of a card with this memory.

    >>> card_units(16130), card_units(15079), card_units(143150), card_units(15079, MIB)
    (15, 14, 139, 15079)
    """
    return memory_mib // MIB_PER_UNIT[unit]


def believable_units(claimed: int, memory_mib: int | None, unit: MemoryUnit, offered: int) -> int:
    """Units of a card from its inventory, at most what is possible.

    The limits are the card's own memory and what the whole node offers (`offered`, 0 = unknown).

    >>> believable_units(99999999999, 1, GIB, 0), believable_units(15, 16130, GIB, 30)
    (0, 15)
    >>> believable_units(139, None, GIB, 28)
    28
    """
    if claimed <= 0:  # every card that is not shared
        return 0
    limits = (
        card_units(memory_mib, unit) if memory_mib else claimed,
        offered if offered > 0 else claimed,
    )
    return max(0, min(claimed, *limits))


def grant_mib(memory_mib: int, units: int, card_units: int) -> int:
    """MiB of `units` of a card, in proportion.

    All grants of a card together are never more than its memory.

    >>> grant_mib(16130, 4, 15), grant_mib(15079, 4, 14), grant_mib(143150, 4, 139)
    (4301, 4308, 4119)
    """
    return memory_mib * units // card_units
