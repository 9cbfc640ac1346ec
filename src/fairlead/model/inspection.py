"""Which pods hold which shared cards: the content of `inspect` and the extender's `/inspect`.

Specification: docs/spec/gpu-sharing.md#inspect.

All amounts are in the node's own `unit` (GiB or MiB), except names that end in `_mib`. An `index`
is the one that nvidia-smi prints.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from fairlead.model.devices.gpu import CardMode
from fairlead.model.resources import MemoryUnit


class ContainerPart(Struct, frozen=True, gc=False):
    """What one container has of one card; `mib` None = unknown."""

    units: int
    mib: int | None
    core_percent: int


class InspectedPod(Struct, frozen=True, gc=False):
    """A pod on one card; in a node's `pending`, a pod whose card is not known.

    `used`: what it has of that card only.
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
    """`total` is 0 for an exclusive card on a node that still has pods on other, shared cards.

    `is_healthy` has no meaning for a card that drains.
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
    """How the node's provider isolates the pods of a card, and how strictly.

    See docs/spec/gpu-sharing.md#isolation-providers.
    """

    provider: str
    memory: str
    compute: str
    fault: str


class InspectedNode(Struct, frozen=True, gc=False):
    """`used` includes `pending`: pods that hold memory on the node, on an unknown card.

    `mode`: shared, or draining (all its cards drain, or the node is no longer shared: no new pods).
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
        """The number of unhealthy cards, without those that drain."""
        return sum(not card.is_healthy for card in self.cards)


class DrainingCards(Struct, frozen=True, gc=False):
    """Cards of a node by index, and the pods (`namespace/name`) that hold some in the old mode.

    `is_shared`: the new mode is sharing.
    """

    node: str
    gpus: tuple[int, ...]
    holders: tuple[str, ...]
    is_shared: bool
