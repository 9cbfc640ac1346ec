"""GPUs: a node's card (`GpuSlot`), its values (`GpuReading`), a container on it (`GpuHolder`).

Units: memory in MiB, ratios 0..1, power in watts, clocks in hertz; None = unknown, never 0 or -1. A
slot comes from the API server and may have no reading; a reading comes from an exporter and may
exist without a slot.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum
from typing import Final

from msgspec import Struct

from fairlead.model.moment import Moment

BUSY_FROM: Final = 0.01
"""Utilization from which a card is busy; below it, it is idle
(docs/spec/console.md#cluster-page).
"""


class GpuMode(StrEnum):
    """How a node offers its GPUs, how a pod requests them, and how a container holds one."""

    NONE = "none"
    EXCLUSIVE = "exclusive"
    SHARE = "share"
    TOPOLOGY = "topology"
    MIG = "mig"
    TIMESLICE = "timeslice"
    MPS = "mps"

    @classmethod
    def _missing_(cls, value: object) -> GpuMode:
        """An unknown word in a reading: SHARE, a holder that may not be alone on its card."""
        return cls.SHARE


class CardMode(StrEnum):
    """How one card is allocated.

    `DRAINING`: not at all, until the last holders of its node's old mode have ended.
    """

    EXCLUSIVE = "exclusive"
    SHARED = "shared"
    DRAINING = "draining"
    TOPOLOGY = "topology"
    MIG = "mig"

    @classmethod
    def _missing_(cls, value: object) -> CardMode:
        """The mode for an unknown word in an inventory."""
        return cls.EXCLUSIVE


class Health(StrEnum):
    HEALTHY = "Healthy"
    UNHEALTHY = "Unhealthy"
    UNKNOWN = "Unknown"

    @classmethod
    def _missing_(cls, value: object) -> Health:
        """The health for an unknown word in an inventory: it is not `Healthy`."""
        return cls.UNHEALTHY


class Grant(Struct, frozen=True, gc=False):
    """A share of one GPU for one container.

    `units` of `aliyun.com/gpu-mem`, 0 = the whole card.

    `memory_mib` is the limit inside the container. Only Fairlead's annotation has uuid and MiB;
    from others they are "" and None, and the MiB are computed from the units
    (docs/spec/gpu-sharing.md#units-and-the-proportional-grant).
    """

    uuid: str
    index: int
    units: int
    memory_mib: int | None = None
    core_percent: int = 0

    @property
    def is_whole(self) -> bool:
        """Whether it is the whole card: it has neither units nor core percent."""
        return not self.units and not self.core_percent


class GpuSlot(Struct, frozen=True, gc=False):
    """One entry of a node's GPU inventory (annotation `fairlead.io/gpus`).

    Specification: docs/spec/gpu-sharing.md#node-labels-annotations-and-inventory.

    `minor` -1 and `memory_mib` None: unknown.
    """

    index: int
    uuid: str = ""
    minor: int = -1
    model: str = ""
    memory_mib: int | None = None
    units: int = 0
    health: Health = Health.HEALTHY
    reason: str = ""
    mode: CardMode = CardMode.EXCLUSIVE


class GpuHolder(Struct, frozen=True, gc=False):
    """One container on one GPU, from the page of the node's exporter."""

    namespace: str
    pod: str
    container: str = ""
    mode: GpuMode = GpuMode.EXCLUSIVE
    memory_used_mib: float | None = None
    memory_limit_mib: float | None = None
    utilization_ratio: float | None = None


_COMPUTE_SLICES: Final = re.compile(r"(\d+)g\.", re.ASCII)


class GpuInstance(Struct, frozen=True, gc=False):
    """Newest values of a MIG instance: its id on the card, its profile (`1g.18gb`), its holders."""

    id: int
    profile: str = ""
    memory_total_mib: float | None = None
    memory_used_mib: float | None = None
    utilization_ratio: float | None = None
    holders: tuple[GpuHolder, ...] = ()

    @property
    def compute_slices(self) -> int:
        """Its number of compute slices, from the profile; 1 if the profile is unknown.

        >>> GpuInstance(1, "3g.71gb").compute_slices, GpuInstance(1).compute_slices
        (3, 1)
        """
        match = _COMPUTE_SLICES.match(self.profile)
        return int(match[1]) if match else 1


def instances_utilization(instances: Sequence[GpuInstance]) -> float | None:
    """The utilization of a divided card; None if an instance's is unknown.

    It is the mean of its instances, weighted by slices.

    >>> half = GpuInstance(1, "3g.71gb", None, None, 0.5)
    >>> small = GpuInstance(7, "1g.18gb", None, None, 0.1)
    >>> instances_utilization([half, small])
    0.4
    """
    ratios = [each.utilization_ratio for each in instances]
    known = [ratio for ratio in ratios if ratio is not None]
    if not known or len(known) < len(ratios):
        return None
    slices = [each.compute_slices for each in instances]
    return sum(ratio * count for ratio, count in zip(known, slices, strict=True)) / sum(slices)


class GpuReading(Struct, frozen=True, gc=False):
    """The newest values of one GPU. `read_at`: when its exporter answered, epoch seconds.

    `instances`: of a card that is divided by MIG; memory, utilization and `holders` are then those
    of all instances together. `idle_since`: since when its utilization has been below 1 % without
    interruption, as far back as the reader observed it; None = busy or unknown.
    """

    node: str
    index: int
    uuid: str
    model: str = ""
    memory_total_mib: float | None = None
    memory_used_mib: float | None = None
    utilization_ratio: float | None = None
    temperature_celsius: float | None = None
    power_watts: float | None = None
    healthy: bool | None = None
    last_xid: int | None = None
    last_xid_at: Moment | None = None
    driver_version: str = ""
    idle_since: Moment | None = None
    read_at: Moment = 0.0
    holders: tuple[GpuHolder, ...] = ()
    instances: tuple[GpuInstance, ...] = ()
