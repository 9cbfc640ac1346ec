"""What the memory guard of a container counts, by card.

Specification: docs/spec/telemetry.md#container-metrics.
"""

from __future__ import annotations

from collections.abc import Mapping

from fairlead.model.devices.kubelet import ContainerLimits, Region, RegionCard
from fairlead.model.refusal import Refusal

_MIB = 1 << 20


def counted(limits: ContainerLimits, region: Region) -> Mapping[str, RegionCard] | Refusal:
    """The counters by the card's UUID.

    The guard never lets a card's bytes in use exceed the limit. A Refusal: they do, because a
    program of the container wrote into the region.

    >>> from fairlead.model.devices.kubelet import CardLimit
    >>> limits = ContainerLimits((CardLimit("GPU-a", 1), CardLimit("GPU-b", 2)), "/r")
    >>> found = counted(limits, Region(1, (RegionCard(5), RegionCard(7, denied=3))))
    >>> [(uuid, card.used, card.denied) for uuid, card in found.items()]
    [('GPU-a', 5, 0), ('GPU-b', 7, 3)]
    """
    found = {limit.uuid: card for limit, card in zip(limits.cards, region.cards, strict=False)}
    for limit in limits.cards:
        card = found.get(limit.uuid)
        if card is not None and card.used > limit.memory_mib * _MIB:
            return Refusal(
                f"the region counts {card.used} bytes of GPU {limit.uuid}, its limit is "
                f"{limit.memory_mib * _MIB}"
            )
    return found
