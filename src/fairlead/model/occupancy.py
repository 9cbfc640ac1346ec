"""Which pods hold which GPU, and how much of it: the result of `rules/holding/occupancy`.

The `holders` of a card are known from grants and readings; a pod whose card is unknown is in its
node's `unplaced`. The counts of a node do not depend on that: they come from the requests of pods.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from fairlead.model.devices.gpu import CardMode, GpuMode, GpuReading
from fairlead.model.node import Node
from fairlead.model.pod import Pod
from fairlead.model.resources import MemoryUnit

TIME_SHARED_MODES: Final = (GpuMode.TIMESLICE, GpuMode.MPS)
"""Modes in which several containers each may use the whole card, in turns."""


class CardHolder(Struct, frozen=True, gc=False):
    """One container on one card. `ratio`: its part of the card (the whole card = 1).

    `container` is "" when only the pod is known. Used memory and utilization are the container's
    own; None = not measured.
    """

    pod: Pod
    container: str
    mode: GpuMode
    ratio: float
    units: int = 0
    core_percent: int = 0
    memory_granted_mib: float | None = None
    memory_used_mib: float | None = None
    utilization_ratio: float | None = None


class CardOccupancy(Struct, frozen=True, gc=False):
    """One GPU. `is_healthy` None = unknown.

    A draining card is not unhealthy: it waits until holders of its node's old mode end. `is_named`:
    its node's inventory has its UUID. `is_offered`: its node lists the card; a card that only a
    device reports is not allocated. `memory_total_mib` may be a fraction if a node's total is
    divided by its cards. `units_free`, `core_free`: what the scheduler can still allocate on it.
    `core_total` 0 = compute is not divided.
    """

    node: str
    index: int
    uuid: str = ""
    minor: int = -1
    model: str = ""
    mode: CardMode = CardMode.EXCLUSIVE
    units: int = 0
    memory_total_mib: float | None = None
    is_healthy: bool | None = None
    is_draining: bool = False
    is_withheld: bool = False
    is_named: bool = False
    is_offered: bool = True
    reason: str = ""
    holders: tuple[CardHolder, ...] = ()
    reading: GpuReading | None = None
    units_free: int = 0
    core_total: int = 0
    core_used: int = 0
    core_free: int = 0

    @property
    def allocated_ratio(self) -> float:
        """The allocated part of the card, 0..1 (time slices may promise more than 1: still 1)."""
        return min(1.0, sum([holder.ratio for holder in self.holders]))

    @property
    def is_divided(self) -> bool:
        """Whether the card is allocated in units: shared, or its last sharing pods have not ended.

        Inventories have units for whole cards too.
        """
        return self.mode == CardMode.SHARED or any(holder.units for holder in self.holders)

    @property
    def units_allocated(self) -> int:
        return sum([holder.units for holder in self.holders])

    @property
    def units_overcommitted(self) -> int:
        """The number of granted units beyond those that exist: the card shrank below its grants."""
        return max(0, self.units_allocated - self.units)

    @property
    def memory_allocated_mib(self) -> float | None:
        """Allocated MiB; None if a holder's part is not known in MiB.

        Holders that take turns may each use the whole card, which counts once.
        """
        granted = [holder.memory_granted_mib for holder in self.holders]
        known = [mib for mib in granted if mib is not None]
        if len(known) < len(granted):
            return None
        if (
            len(known) > 1
            and self.memory_total_mib is not None
            and any(holder.mode in TIME_SHARED_MODES for holder in self.holders)
        ):
            return min(self.memory_total_mib, sum(known))
        return sum(known)


class NodeOccupancy(Struct, frozen=True, gc=False):
    """The GPUs of one node.

    `gpus_allocated` may be a fraction on shared nodes. Memory and utilization None = unknown.
    `units_total`, `units_allocated`: of `aliyun.com/gpu-mem`, in `unit` (GiB or MiB). `unplaced`:
    pods that hold unknown GPUs of the node. `gpu_worth`: how many cards one offered GPU is, less
    than 1 with time slices; `mig_worth`: the same of one compute slice of a MIG instance.
    `memory_used_of_mib`: total memory of the cards whose used memory is known, of which
    `memory_used_mib` is used.
    """

    node: Node
    mode: GpuMode
    gpus_total: int = 0
    gpus_allocated: float = 0
    gpus_unhealthy: int = 0
    gpus_reporting: int = 0
    units_total: int = 0
    units_allocated: int = 0
    unit: MemoryUnit = MemoryUnit.GIB
    memory_total_mib: float | None = None
    memory_allocated_mib: float | None = None
    memory_used_mib: float | None = None
    utilization_ratio: float | None = None
    cards: tuple[CardOccupancy, ...] = ()
    unplaced: tuple[Pod, ...] = ()
    gpu_worth: float = 1.0
    mig_worth: float = 0.0
    memory_used_of_mib: float | None = None

    @property
    def gpus_draining(self) -> int:
        return sum(card.is_draining for card in self.cards)

    @property
    def units_overcommitted(self) -> int:
        return sum(card.units_overcommitted for card in self.cards)

    @property
    def is_allocated(self) -> bool:
        """Whether some GPU, or a part of one, is granted."""
        return self.gpus_allocated > 0 or self.units_allocated > 0


class PodUse(Struct, frozen=True, gc=False):
    """What one pod holds and uses, or a job with all its pods.

    `gpus`: number of cards, with fractions for shared ones. `memory_used_of_mib`: its memory on the
    cards whose used memory is known.
    """

    gpus: float = 0
    memory_allocated_mib: float | None = None
    memory_used_mib: float | None = None
    utilization_ratio: float | None = None
    memory_used_of_mib: float | None = None


class GpuTotals(Struct, frozen=True, gc=False):
    """The GPUs of the cluster in sum.

    Utilization is the mean over GPUs with values, not over nodes. `memory_used_of_mib`: total
    memory of the GPUs whose used memory is known.
    """

    nodes: int = 0
    nodes_allocated: int = 0
    nodes_unhealthy: int = 0
    nodes_faulty: int = 0
    gpus: int = 0
    gpus_allocated: float = 0
    gpus_unhealthy: int = 0
    gpus_reporting: int = 0
    memory_total_mib: float | None = None
    memory_allocated_mib: float | None = None
    memory_used_mib: float | None = None
    utilization_ratio: float | None = None
    memory_used_of_mib: float | None = None


def rounded_gpus(gpus: float) -> float:
    """A number of GPUs rounded to one decimal, halves up.

    >>> rounded_gpus(0.75), rounded_gpus(0.15 + 0.1), rounded_gpus(2)
    (0.8, 0.3, 2.0)
    """
    return int(round(gpus * 10, 6) + 0.5) / 10
