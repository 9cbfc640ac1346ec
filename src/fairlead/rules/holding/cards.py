"""Which GPUs does a node have? Its inventory, what devices report, else as many nameless cards as its capacity says.

Sizes come from the inventory, then the device, then a label, then (shared nodes) the node's total divided; never from a table of models.
An inventory that claims more units than its card's memory, or its node, can have is not believed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fairlead.model.gpu import GpuReading, GpuSlot
from fairlead.model.keys import ANNOTATION_GPU_UNIT
from fairlead.model.node import Node
from fairlead.model.occupancy import CardOccupancy
from fairlead.model.resources import ALIYUN_GPU, GPU_COUNT, GPU_MEMORY, NVIDIA_GPU, counted
from fairlead.rules.holding.units import believable_units, unit_of
from fairlead.rules.node_status import SHARE

MOST_CARDS: Final = 4096
"""Of a node that claims more GPUs than this, no card is drawn: it is a mistake, and each would cost memory."""


def cards_of(node: Node, mode: str, readings: Sequence[GpuReading]) -> tuple[CardOccupancy, ...]:
    """The node's cards by index, without holders."""
    by_uuid = {reading.uuid: reading for reading in readings if reading.uuid}
    by_index = {reading.index: reading for reading in readings}
    if node.gpus:
        unit = unit_of(node, max((slot.units for slot in node.gpus if slot.units <= (slot.memory_mib or slot.units)), default=0))
        cards = [_from_slot(node, slot, unit, by_uuid.pop(slot.uuid, None) or _unclaimed(by_index, slot)) for slot in node.gpus]
        known = {slot.index for slot in node.gpus}
        cards += [_from_reading(node, mode, reading) for reading in by_uuid.values() if reading.index not in known]
    elif readings:
        cards = [_from_reading(node, mode, reading) for reading in readings]
    else:
        count = node.capacity.get(NVIDIA_GPU, 0) or node.capacity.get(ALIYUN_GPU, 0) or node.capacity.get(GPU_COUNT, 0)
        cards = [_nameless(node, mode, index) for index in range(count)] if count <= MOST_CARDS else []
    return _with_units(node, mode, sorted(cards, key=lambda card: card.index))


def _unclaimed(by_index: dict[int, GpuReading], slot: GpuSlot) -> GpuReading | None:
    """The reading at the slot's place, unless it names another card."""
    reading = by_index.get(slot.index)
    return reading if reading is not None and (not slot.uuid or not reading.uuid or reading.uuid == slot.uuid) else None


def _from_slot(node: Node, slot: GpuSlot, unit: str, reading: GpuReading | None) -> CardOccupancy:
    is_draining = slot.mode == "draining"
    offered = counted(node.capacity, GPU_MEMORY) if slot.mode == "shared" else 0
    is_fit = slot.health == "Healthy" or is_draining
    total = slot.memory_mib or (reading.memory_total_mib if reading else None) or node.card_memory_mib
    return CardOccupancy(
        node=node.name,
        index=slot.index,
        uuid=slot.uuid or (reading.uuid if reading else ""),
        minor=slot.minor,
        model=slot.model or (reading.model if reading else ""),
        mode=slot.mode,
        units=believable_units(slot.units, slot.memory_mib, unit, offered),
        memory_total_mib=total,
        is_healthy=is_fit and (reading is None or reading.healthy is not False),
        is_draining=is_draining,
        reason=slot.reason or _device_reason(reading),
        reading=reading,
    )


def _from_reading(node: Node, mode: str, reading: GpuReading) -> CardOccupancy:
    return CardOccupancy(
        node=node.name,
        index=reading.index,
        uuid=reading.uuid,
        model=reading.model,
        mode="shared" if mode == SHARE else mode,
        memory_total_mib=reading.memory_total_mib or node.card_memory_mib,
        is_healthy=reading.healthy,
        reason=_device_reason(reading),
        reading=reading,
    )


def _nameless(node: Node, mode: str, index: int) -> CardOccupancy:
    mode = "shared" if mode == SHARE else mode
    return CardOccupancy(node=node.name, index=index, mode=mode, memory_total_mib=node.card_memory_mib)


def _device_reason(reading: GpuReading | None) -> str:
    if reading is None or reading.healthy is not False:
        return ""
    return f"XID {reading.last_xid}" if reading.last_xid else "the device reports a fault"


def _with_units(node: Node, mode: str, cards: list[CardOccupancy]) -> tuple[CardOccupancy, ...]:
    """Shared cards without an inventory get an equal part of the node's units, and of its memory when nothing else tells it."""
    total = counted(node.capacity, GPU_MEMORY)
    if mode != SHARE or not cards or total <= 0 or any(card.units for card in cards):
        return tuple(cards)
    units = total // len(cards)
    unit_mib = 1 if node.annotations.get(ANNOTATION_GPU_UNIT) == "MiB" else 1024
    return tuple(
        CardOccupancy(
            node=card.node,
            index=card.index,
            uuid=card.uuid,
            minor=card.minor,
            model=card.model,
            mode=card.mode,
            units=units,
            memory_total_mib=card.memory_total_mib or float(units * unit_mib),
            is_healthy=card.is_healthy,
            reason=card.reason,
            reading=card.reading,
        )
        for card in cards
    )
