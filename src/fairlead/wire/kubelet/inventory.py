"""Writes a node's inventory of GPUs (annotation `fairlead.io/gpus`).

Specification: docs/spec/gpu-sharing.md#node-labels-annotations-and-inventory.

`wire/kube/objects.parse_gpu_slots` reads it.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec import Struct

from fairlead.model.devices.gpu import GpuSlot


class WireInventoryEntry(Struct, gc=False, rename="camel"):
    """All keys, in order.

    Specification: docs/spec/gpu-sharing.md#node-labels-annotations-and-inventory.
    """

    index: int
    minor: int
    uuid: str
    model: str
    memory_mib: int | None = msgspec.field(name="memoryMiB")
    units: int
    health: str
    reason: str
    mode: str


def render_inventory(cards: Iterable[GpuSlot]) -> str:
    """
    >>> render_inventory([GpuSlot(0, "GPU-1", 0, "Tesla T4", 15079, 14)])[:56]
    '[{"index":0,"minor":0,"uuid":"GPU-1","model":"Tesla T4",'
    """
    return msgspec.json.encode(
        [_entry(card) for card in sorted(cards, key=lambda card: card.index)]
    ).decode()


def _entry(card: GpuSlot) -> WireInventoryEntry:
    return WireInventoryEntry(
        card.index,
        card.minor,
        card.uuid,
        card.model,
        card.memory_mib,
        card.units,
        str(card.health),
        card.reason,
        str(card.mode),
    )
