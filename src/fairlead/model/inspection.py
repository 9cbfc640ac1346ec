"""Who sits on which shared card, as `inspect` and the extender's `/inspect` tell it
(docs/spec/gpu-sharing.md#inspect).

All amounts are in the node's own `unit` (GiB or MiB) but for names that end in `_mib`. An `index` is what
nvidia-smi says.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from fairlead.model.devices.gpu import CardMode
from fairlead.model.resources import MemoryUnit


class ContainerPart(Struct, frozen=True, gc=False):
    """What one container has of one card; `mib` None = nobody says."""

    units: int
    mib: int | None
    core_percent: int


class InspectedPod(Struct, frozen=True, gc=False):
    """A pod on one card, or of a node's `pending`, on none that is known.

    `used`: what it has of that card alone.
    """

    name: str
    namespace: str
    uid: str
    used: int
    containers: Mapping[str, ContainerPart]
    state: str
    is_terminating: bool
    used_mib: float | None = None


class InspectedCard(Struct, frozen=True, gc=False):
    """`total` is 0 for a card that is whole while others of its node still have sharers.

    `is_healthy` is no verdict on a card that drains.
    """

    index: int
    uuid: str
    model: str
    total: int
    used: int
    memory_mib: int
    is_healthy: bool
    reason: str
    core_total: int
    core_used: int
    pods: tuple[InspectedPod, ...]


class Isolation(Struct, frozen=True, gc=False):
    """What keeps the pods of a card apart, and how well: of the node's provider.

    See docs/spec/gpu-sharing.md#isolation-providers.
    """

    provider: str
    memory: str
    compute: str
    fault: str


class InspectedNode(Struct, frozen=True, gc=False):
    """`used` counts `pending` too: pods that hold memory here, nobody knows on which card.

    `mode`: shared, or draining (all its cards, or the node shares no longer: no new pods).
    """

    name: str
    address: str
    unit: MemoryUnit
    mode: CardMode
    isolation: Isolation
    total: int
    used: int
    overcommitted: int
    cards: tuple[InspectedCard, ...]
    pending: tuple[InspectedPod, ...]

    @property
    def pending_units(self) -> int:
        return sum(pod.used for pod in self.pending)

    @property
    def unhealthy(self) -> int:
        """Cards out of order; those that drain are none."""
        return sum(not card.is_healthy for card in self.cards)


class DrainingCards(Struct, frozen=True, gc=False):
    """Cards of a node by index, and the pods (`namespace/name`) that still hold some in the old mode.

    `is_shared`: the mode that comes.
    """

    node: str
    gpus: tuple[int, ...]
    holders: tuple[str, ...]
    is_shared: bool
