"""The GPUs of a node: from its inventory, else from devices' reports, else from its capacity.

Cards from the capacity have no names.

Sizes come from the inventory, then the device, then a label, then from the units; never from a
table of models. An inventory that claims more units than its card's memory, or its node, can have
is cut to what is possible.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from math import isfinite
from operator import attrgetter
from typing import Final

from msgspec import structs

from fairlead.model.devices.gpu import CardMode, GpuMode, GpuReading, GpuSlot, Health
from fairlead.model.node import Node
from fairlead.model.occupancy import CardOccupancy
from fairlead.model.resources import (
    ALIYUN_GPU,
    GPU_COUNT,
    GPU_MEMORY,
    MemoryUnit,
    counted,
    nvidia_gpus,
)
from fairlead.rules.holding.units import GIB, MIB, MIB_PER_UNIT, believable_units, unit_of
from fairlead.rules.nodes.status import MIG, SHARE, TOPOLOGY

MOST_CARDS: Final = 4096
"""`MOST_CARDS`: a node with a larger count gets no cards.

Such a count is a mistake, and each card costs memory.
"""
_CARD_MODES: Final = {SHARE: CardMode.SHARED, TOPOLOGY: CardMode.TOPOLOGY, MIG: CardMode.MIG}
_DRAINING: Final = CardMode.DRAINING
_SHARED: Final = CardMode.SHARED
_HEALTHY: Final = Health.HEALTHY
_EXCLUSIVE: Final = CardMode.EXCLUSIVE
_by_index = attrgetter("index")
WITHHELD: Final = "taken out by an operator"


def node_unit(node: Node, devices: int = 0) -> MemoryUnit:
    """The unit of the node's `aliyun.com/gpu-mem`.

    `devices`: number of reporting devices, used if the node has no count of GPUs.
    """
    offered = counted(node.capacity, GPU_MEMORY)
    claimed = [
        min(slot.units, offered or slot.units)
        for slot in node.gpus
        if 0 < slot.units <= (slot.memory_mib or slot.units)
    ]
    if claimed:
        return unit_of(node, max(claimed))
    count = counted(node.capacity, GPU_COUNT) or devices
    return unit_of(node, offered / count if count > 0 else 0)


def unit_of_cluster(nodes: Iterable[Node]) -> MemoryUnit:
    """The unit in which pods ask, as far as nodes show it.

    MiB if all nodes that offer shared memory count in it, else GiB.

    >>> huge = Node("n", capacity={GPU_MEMORY: 16130, GPU_COUNT: 1})
    >>> small = Node("n", capacity={GPU_MEMORY: 15, GPU_COUNT: 1})
    >>> print(unit_of_cluster([huge]), unit_of_cluster([huge, small]), unit_of_cluster([]))
    MiB GiB GiB
    """
    units = {node_unit(node) for node in nodes if counted(node.capacity, GPU_MEMORY)}
    return MIB if units == {MIB} else GIB


def cards_of(
    node: Node,
    mode: GpuMode,
    unit: MemoryUnit,
    readings: Sequence[GpuReading] = (),
    withheld: Collection[int] = (),
) -> list[CardOccupancy]:
    """The node's cards by index, without holders.

    `withheld`: indexes that an operator took out of sharing.
    """
    if node.gpus:
        cards = _from_inventory(node, mode, unit, readings)
    elif mode == SHARE:
        cards = _from_count(node, readings)
    elif readings:
        cards = [_reported(node, mode, reading.index, reading) for reading in readings]
    else:
        count = (
            nvidia_gpus(node.capacity)
            or node.capacity.get(ALIYUN_GPU, 0)
            or node.capacity.get(GPU_COUNT, 0)
        )
        cards = (
            [_reported(node, mode, index, None) for index in range(count)]
            if count <= MOST_CARDS
            else []
        )
    cards.sort(key=_by_index)
    if mode == SHARE and not any(card.units for card in cards):
        cards = _in_equal_parts(node, unit, cards)
    return (
        [_taken_out(card) if card.index in withheld else card for card in cards]
        if withheld
        else cards
    )


def _from_inventory(
    node: Node, mode: GpuMode, unit: MemoryUnit, readings: Sequence[GpuReading]
) -> list[CardOccupancy]:
    if not readings:
        return [_from_slot(node, slot, unit, None) for slot in node.gpus]
    by_uuid = {reading.uuid: reading for reading in readings if reading.uuid}
    by_index = {reading.index: reading for reading in readings}
    cards = [
        _from_slot(node, slot, unit, by_uuid.pop(slot.uuid, None) or _unclaimed(by_index, slot))
        for slot in node.gpus
    ]
    known = {slot.index for slot in node.gpus}
    more = [reading for reading in by_uuid.values() if reading.index not in known]
    return cards + [
        _reported(node, mode, reading.index, reading, is_offered=False) for reading in more
    ]


def _from_count(node: Node, readings: Sequence[GpuReading]) -> list[CardOccupancy]:
    """As many shared cards as the node's gpu-count, numbered from 0.

    Specification: docs/spec/gpu-sharing.md#node-labels-annotations-and-inventory.

    Each has the reading of its device. A node without a count has the cards that report; a
    scheduler, which reads no devices, knows none of them.
    """
    count = counted(node.capacity, GPU_COUNT)
    if count > MOST_CARDS:
        return []
    by_index = {reading.index: reading for reading in readings}
    cards = [_reported(node, SHARE, index, by_index.pop(index, None)) for index in range(count)]
    return cards + [
        _reported(node, SHARE, reading.index, reading, is_offered=False)
        for reading in by_index.values()
    ]


def _unclaimed(by_index: dict[int, GpuReading], slot: GpuSlot) -> GpuReading | None:
    """The reading at the slot's index, unless it names another card."""
    reading = by_index.get(slot.index)
    return (
        reading
        if reading is not None and (not slot.uuid or not reading.uuid or reading.uuid == slot.uuid)
        else None
    )


def _from_slot(
    node: Node, slot: GpuSlot, unit: MemoryUnit, reading: GpuReading | None
) -> CardOccupancy:
    is_draining = slot.mode == _DRAINING
    offered = counted(node.capacity, GPU_MEMORY) if slot.mode == _SHARED else 0
    is_fit = slot.health == _HEALTHY or is_draining
    units = believable_units(slot.units, slot.memory_mib, unit, offered)
    memory_mib = slot.memory_mib or _size(node, reading)
    return CardOccupancy(
        node=node.name,
        index=slot.index,
        uuid=slot.uuid or (reading.uuid if reading else ""),
        minor=slot.minor,
        model=slot.model or (reading.model if reading else ""),
        mode=slot.mode,
        units=units,
        memory_total_mib=memory_mib or units * MIB_PER_UNIT[unit] or None,
        is_healthy=is_fit and (reading is None or reading.healthy is not False),
        is_draining=is_draining,
        is_named=bool(slot.uuid),
        reason=slot.reason or (_device_reason(reading) if reading is not None else ""),
        reading=reading,
    )


def _reported(
    node: Node, mode: GpuMode, index: int, reading: GpuReading | None, *, is_offered: bool = True
) -> CardOccupancy:
    """A card without an inventory, with the reading of its device, if there is one."""
    return CardOccupancy(
        node=node.name,
        index=index,
        uuid=reading.uuid if reading else "",
        model=reading.model if reading else "",
        mode=_CARD_MODES.get(mode, _EXCLUSIVE),
        memory_total_mib=_size(node, reading),
        is_healthy=reading.healthy if reading else None,
        is_offered=is_offered,
        reason=_device_reason(reading),
        reading=reading,
    )


def _size(node: Node, reading: GpuReading | None) -> float | None:
    """MiB from the device, else from the node's label; an exporter's page may contain infinity."""
    total = reading.memory_total_mib if reading else None
    return total if total and isfinite(total) else node.card_memory_mib


def _device_reason(reading: GpuReading | None) -> str:
    if reading is None or reading.healthy is not False:
        return ""
    return f"XID {reading.last_xid}" if reading.last_xid else "the device reports a fault"


def _in_equal_parts(
    node: Node, unit: MemoryUnit, cards: Sequence[CardOccupancy]
) -> list[CardOccupancy]:
    """Each of the first cards, as many as the node shares, gets an equal part of the node's units.

    It gets an equal part of the memory, too, if its size is not known otherwise. Units are whole
    numbers, since they are given away whole; memory is not, so that the cards add up to what the
    node has.
    """
    total = counted(node.capacity, GPU_MEMORY)
    count = counted(node.capacity, GPU_COUNT) or len(cards)
    if total <= 0 or not cards:
        return list(cards)
    part_mib = total * MIB_PER_UNIT[unit] / count
    shared = [
        structs.replace(
            card, units=total // count, memory_total_mib=card.memory_total_mib or part_mib
        )
        for card in cards[:count]
    ]
    return shared + list(cards[count:])


def _taken_out(card: CardOccupancy) -> CardOccupancy:
    """A shared card that an operator took out of use counts as unhealthy.

    A card of another mode is only marked: it has nothing to share yet.
    """
    if card.mode != _SHARED:
        return structs.replace(card, is_withheld=True)
    return structs.replace(card, is_withheld=True, is_healthy=False, reason=card.reason or WITHHELD)
