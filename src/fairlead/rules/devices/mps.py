"""What the MPS daemon of each card allows by default.

Specification: docs/spec/gpu-sharing.md#clients-of-mps.

A client's own limit is in its environment, which it can change: an entry for a card that it does
not see makes MPS drop all of them. The daemon's limit then still holds. It is one for all clients
of a card, so it is the largest grant.
"""

from __future__ import annotations

from collections.abc import Iterable

from fairlead.model.devices.driver import MpsLimit
from fairlead.model.devices.gpu import CardMode, GpuSlot
from fairlead.model.devices.kubelet import GivenShare


def mps_limits(cards: Iterable[GpuSlot], shares: Iterable[GivenShare]) -> tuple[MpsLimit, ...]:
    """The limit of each shared card; 0 where no container has a grant.

    Cards that a pod has as a whole are left out: it may use them without MPS.

    >>> from fairlead.model.devices.gpu import Grant
    >>> cards = [GpuSlot(0, "GPU-a", 0, "T4", 15079, mode=CardMode.SHARED)]
    >>> grants = [Grant("GPU-a", 0, 4, 4308), Grant("GPU-a", 0, 2, 2154)]
    >>> mps_limits(cards, [GivenShare("ns", "p", "uid", "app", each, "t") for each in grants])
    (MpsLimit(uuid='GPU-a', memory_mib=4308),)
    """
    largest: dict[str, int] = {}
    for share in shares:
        grant = share.grant
        largest[grant.uuid] = max(largest.get(grant.uuid, 0), grant.memory_mib or 0)
    return tuple(
        MpsLimit(card.uuid, largest.get(card.uuid, 0))
        for card in cards
        if card.mode == CardMode.SHARED
    )
