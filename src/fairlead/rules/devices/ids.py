"""Device ids of a node's cards, as the kubelet allocates them.

Specification: docs/spec/gpu-sharing.md#resources-and-device-ids,
docs/spec/gpu-sharing.md#units-and-the-proportional-grant, docs/spec/gpu-sharing.md#device-plugin.

An id of shared memory contains a card's UUID, but does not mean that this card was granted: the
kubelet chooses ids freely, the scheduler chooses cards.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from hashlib import sha256
from typing import Final

from fairlead.model.devices.gpu import CardMode, GpuSlot, Health
from fairlead.model.devices.kubelet import OfferedDevice
from fairlead.model.refusal import Refusal
from fairlead.model.resources import GPU_CORE, GPU_MEMORY, NVIDIA_GPU, MemoryUnit
from fairlead.rules.holding.units import MIB

MOST_LIST_BYTES: Final = 3 << 20
"""`MOST_LIST_BYTES`: size of one list as a message.

gRPC allows 4 MiB; the rest is room for more cards.
"""
_HEALTHY: Final = Health.HEALTHY
_DRAINING: Final = CardMode.DRAINING
_BETWEEN: Final = "-_-"
_BEFORE_SLICE: Final = "::"
_CORES_PER_CARD: Final = 100
_ID_FRAME_BYTES: Final = 2 + 2 + 2 + len(Health.UNHEALTHY)
"""`_ID_FRAME_BYTES`: bytes of a message beside each id.

Tags and lengths of device, id and health, and the longer health.
"""


def ids_of(resource: str, card: GpuSlot) -> Sequence[str]:
    """The ids of this resource of one card.

    >>> ids_of("aliyun.com/gpu-mem", GpuSlot(0, "GPU-a", units=2))
    ['GPU-a-_-0', 'GPU-a-_-1']
    >>> ids_of("aliyun.com/gpu-core.percentage", GpuSlot(0, "GPU-a"))[99]
    'GPU-a-_-c99'
    >>> ids_of("nvidia.com/gpu", GpuSlot(0, "GPU-a"))
    ['GPU-a']
    """
    if resource == GPU_MEMORY:
        return [f"{card.uuid}{_BETWEEN}{number}" for number in range(card.units)]
    if resource == GPU_CORE:
        return [f"{card.uuid}{_BETWEEN}c{number}" for number in range(_CORES_PER_CARD)]
    return [card.uuid] if resource == NVIDIA_GPU else []


def uuid_of(device_id: str) -> str:
    """The UUID in an id: the card that it is listed for.

    NVIDIA's plugin appends slices of a card after `::`.

    >>> uuid_of("GPU-a-_-13"), uuid_of("GPU-a"), uuid_of("GPU-a::3")
    ('GPU-a', 'GPU-a', 'GPU-a')
    """
    return device_id.partition(_BETWEEN)[0].partition(_BEFORE_SLICE)[0]


def offered(resource: str, cards: Iterable[GpuSlot]) -> tuple[OfferedDevice, ...]:
    """The list for the kubelet, sorted by id: all ids of a card are healthy, or none is.

    A draining card is listed as not healthy, so that the kubelet gives none of it away.
    """
    devices = [
        OfferedDevice(device_id, card.health == _HEALTHY and card.mode != _DRAINING)
        for card in cards
        for device_id in ids_of(resource, card)
    ]
    return tuple(sorted(devices, key=lambda device: device.id))


def unlistable(cards: Sequence[GpuSlot], unit: MemoryUnit) -> Refusal | None:
    """Why these cards cannot be listed for a kubelet; None = they can.

    The size is checked with every card unhealthy, which makes the list longest.

    >>> unlistable([GpuSlot(0, f"GPU-{0:036}", units=143150)], MIB).reason.partition("; ")[0]
    '1 GPU in MiB: 143150 device ids, a list of 8.6 MiB'
    """
    by_uuid: dict[str, int] = {}
    for card in cards:
        if not card.uuid:
            return Refusal(f"GPU {card.index} has no UUID")
        if card.uuid in by_uuid:
            return Refusal(
                f"GPU {by_uuid[card.uuid]} and GPU {card.index} have the same UUID {card.uuid}"
            )
        by_uuid[card.uuid] = card.index
    count, size = 0, 0
    for card in cards:
        ids = ids_of(GPU_MEMORY, card)
        count += len(ids)
        size += sum(len(device_id) + _ID_FRAME_BYTES for device_id in ids)
    if size <= MOST_LIST_BYTES:
        return None
    hint = "use --memory-unit GiB" if unit == MIB else "share fewer GPUs"
    summary = (
        f"{'1 GPU' if len(cards) == 1 else f'{len(cards)} GPUs'} in {unit}: {count} device ids, a "
        f"list of {size / (1 << 20):.1f} MiB"
    )
    return Refusal(f"{summary}; at most {MOST_LIST_BYTES >> 20} MiB are sent to a kubelet: {hint}")


def token(resource: str, device_ids: Iterable[str]) -> str:
    """The name of a set of ids: 16 hex digits, the same after every restart and in any order.

    >>> token("nvidia.com/gpu", ["GPU-b", "GPU-a"]) == token("nvidia.com/gpu", ["GPU-a", "GPU-b"])
    True
    """
    return sha256("\n".join((resource, *sorted(device_ids))).encode()).hexdigest()[:16]


def preferred(available: Collection[str], must_include: Collection[str], size: int) -> list[str]:
    """The ids that the kubelet should take: exactly `size`, from as few cards as possible.

    Ids that must be included come first, then more of the same cards, then the cards with most ids.
    If too few are available, all of them: the kubelet is not refused.

    >>> preferred(["A-_-0", "A-_-1", "B-_-0"], ["B-_-0"], 2)
    ['A-_-0', 'B-_-0']
    >>> preferred(["A-_-0", "B-_-0", "B-_-1"], [], 2)
    ['B-_-0', 'B-_-1']
    """
    chosen = sorted(set(must_include))
    opened = {uuid_of(device_id) for device_id in chosen}
    by_card: dict[str, list[str]] = defaultdict(list)
    for device_id in sorted(set(available) - set(chosen)):
        by_card[uuid_of(device_id)].append(device_id)
    for uuid in sorted(by_card, key=lambda uuid: (uuid not in opened, -len(by_card[uuid]), uuid)):
        chosen += by_card[uuid]
    return sorted(chosen[: max(0, size)])
