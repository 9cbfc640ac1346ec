"""Who sits on which GPU, and how much of it is granted: the answer of `rules/holding/occupancy`.

`holders` of a card are known from grants and readings; a pod whose card nobody can name is in its node's
`unplaced`. The node's counts never depend on that: they come from what pods ask for.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from fairlead.model.devices.gpu import CardMode, GpuMode, GpuReading
from fairlead.model.node import Node
from fairlead.model.pod import Pod
from fairlead.model.resources import MemoryUnit

BY_TURNS: Final = (GpuMode.TIMESLICE, GpuMode.MPS)
"""How containers have a card that each of them may use as a whole."""


class CardHolder(Struct, frozen=True, gc=False):
    """One container on one card. `ratio`: the part of the card it was given (whole = 1).

    `container` is "" when only the pod is known. Used and utilization are the container's own; None = nobody
    measured them.
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
    """One GPU. `is_healthy` None = nobody says.

    A draining card is no fault: it waits for holders of its node's old mode to leave. `is_named`: its node's
    inventory tells its UUID. `is_offered`: its node tells of the card; of one that a device alone reports,
    nothing is given away. `memory_total_mib` may be a fraction where a node's total is divided. `units_free`,
    `core_free`: what the scheduler may still give of it. `core_total` 0 = compute is not shared out.
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
        """How much of the card is given away, 0..1 (time slices of one card may promise more: still 1)."""
        return min(1.0, sum(holder.ratio for holder in self.holders))

    @property
    def is_divided(self) -> bool:
        """Given away in units: it is shared, or the last who share it have yet to leave.

        Inventories count units of whole cards too.
        """
        return self.mode == CardMode.SHARED or any(holder.units for holder in self.holders)

    @property
    def units_allocated(self) -> int:
        return sum(holder.units for holder in self.holders)

    @property
    def units_overcommitted(self) -> int:
        """Units that are granted and not there: the card shrank below its grants."""
        return max(0, self.units_allocated - self.units)

    @property
    def memory_allocated_mib(self) -> float | None:
        """MiB given away, None when a holder's part is not known in MiB.

        Those who take turns may each have all of the card, which is there once.
        """
        granted = [holder.memory_granted_mib for holder in self.holders]
        known = [mib for mib in granted if mib is not None]
        if len(known) < len(granted):
            return None
        if len(known) > 1 and self.memory_total_mib is not None and any(holder.mode in BY_TURNS for holder in self.holders):
            return min(self.memory_total_mib, sum(known))
        return sum(known)


class NodeOccupancy(Struct, frozen=True, gc=False):
    """GPUs of one node.

    `gpus_allocated` may be a fraction on shared nodes. Memory and utilization None = unknown. `units_total`,
    `units_allocated`: of `aliyun.com/gpu-mem`, in `unit` (GiB or MiB). `unplaced` pods hold GPUs that nobody
    can name. `gpu_worth`: cards' worth of one whole GPU that it offers, less than 1 where cards are given by
    turns; `mig_worth`: of one compute slice of a MIG instance. `memory_used_of_mib`: all memory of the cards
    that tell how much is used, of which `memory_used_mib` is a part.
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
        """Some GPU, or part of one, is granted."""
        return self.gpus_allocated > 0 or self.units_allocated > 0


class PodUse(Struct, frozen=True, gc=False):
    """What one pod (or a job: its pods together) holds and uses.

    `gpus` are cards' worth, fractions for shared ones. `memory_used_of_mib`: what it has of the cards that
    tell how much it uses.
    """

    gpus: float = 0
    memory_allocated_mib: float | None = None
    memory_used_mib: float | None = None
    utilization_ratio: float | None = None
    memory_used_of_mib: float | None = None


class GpuTotals(Struct, frozen=True, gc=False):
    """The GPUs of the cluster together.

    Utilization is the mean over GPUs that report, not over nodes. `memory_used_of_mib`: all memory of those
    that tell how much is used.
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
    """A GPU count to one decimal, halves up.

    >>> rounded_gpus(0.75), rounded_gpus(0.15 + 0.1), rounded_gpus(2)
    (0.8, 0.3, 2.0)
    """
    return int(round(gpus * 10, 6) + 0.5) / 10
