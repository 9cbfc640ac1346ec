"""Which provider isolates the containers on a node's shared cards.

Specification: docs/spec/gpu-sharing.md#isolation-providers.

It is the first of the specification's table that the node supports, one per node. The rules for
`cgroup` and `mig` follow the specification and have not been tried on hardware. `guard` needs its
library; the agent reports whether the node has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final

from fairlead.model.devices.driver import IsolationMeans, MpsLimit
from fairlead.model.devices.gpu import CardMode, GpuSlot
from fairlead.model.devices.kubelet import GivenShare
from fairlead.model.keys import LABEL_GPU_SCHEDULE, LABEL_NO_ISOLATION

_CGROUP_DRIVER: Final = 615
_CGROUP_CUDA: Final = (13, 4)


class Provider(StrEnum):
    """Values of the node's label, from strongest to weakest.

    Specification: docs/spec/gpu-sharing.md#isolation-providers.
    """

    CGROUP = "cgroup"
    MIG = "mig"
    MPS = "mps"
    GUARD = "guard"
    NONE = "none"


def choose_provider(labels: Mapping[str, str], means: IsolationMeans) -> Provider:
    """The provider in force.

    Labels may turn isolation off (`cgpu.disable.isolation=true`, `ack.node.gpu.schedule=share`);
    MPS is used only on request (`ack.node.gpu.schedule=mps`).

    >>> print(choose_provider({"ack.node.gpu.schedule": "mps"}, IsolationMeans(has_mps=True)))
    mps
    >>> print(choose_provider({"cgpu": "true"}, IsolationMeans(has_mps=True)))
    none
    """
    schedule = labels.get(LABEL_GPU_SCHEDULE)
    if labels.get(LABEL_NO_ISOLATION) == "true" or schedule == "share":
        return Provider.NONE
    if means.has_mig:
        return Provider.MIG
    if means.has_cgroup_v2 and means.driver >= _CGROUP_DRIVER and means.cuda >= _CGROUP_CUDA:
        return Provider.CGROUP
    if means.has_mps and schedule == "mps":
        return Provider.MPS
    return Provider.GUARD if means.has_guard else Provider.NONE


def mps_limits(cards: Iterable[GpuSlot], shares: Iterable[GivenShare]) -> tuple[MpsLimit, ...]:
    """What the MPS daemon of each shared card allows its clients; 0 where no container has a grant.

    A client's own limit is in its environment, which it can change: an entry for a card that it
    does not see makes MPS drop all of them. The daemon's limit then still holds. It is one for all
    clients of a card, so it is the largest grant.

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
