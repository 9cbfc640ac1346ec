"""The values of one card from one turn: a group's fields, its processes, its MIG instances.

Keys are names of DCGM fields, values are in DCGM's units: ints where DCGM prints integers. Values
that the card does not have are absent. PCIE_TX_BYTES, PCIE_RX_BYTES, NVLINK_TX_BYTES and
NVLINK_RX_BYTES with the prefix of a device are no DCGM fields but counters for Fairlead's own
families, in bytes.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct


class EngineTime(Struct, frozen=True, gc=False):
    """How long, in percent, a process kept memory and video engines busy; None = unknown."""

    memory: float | None = None
    encoder: float | None = None
    decoder: float | None = None


class GpuProcess(Struct, frozen=True, gc=False):
    """One process on one card, or on one MIG instance. `pid`: on the node.

    `type`: C computes, G draws, M computes over MPS; several types are joined by a plus sign.
    `memory_bytes`, `sm_percent` None: the driver has no value.
    """

    pid: int
    type: str
    memory_bytes: int | None = None
    sm_percent: float | None = None
    engines: EngineTime = EngineTime()


class InstanceReading(Struct, frozen=True, gc=False):
    """One MIG instance: ids of GPU and compute instance, name after `MIG `, its own fields.

    `processes` None: not asked for, or unknown. `failures`: why a collector has no fields, by
    collector.
    """

    gpu_instance: int
    compute_instance: int
    profile: str
    uuid: str
    fields: Mapping[str, int | float] = {}
    processes: tuple[GpuProcess, ...] | None = None
    failures: Mapping[str, str] = {}


class GroupReading(Struct, frozen=True, gc=False):
    """`failures`: sentences by collector: device, fieldvalues, gpm, processes, mig.

    `processes` None: not asked for, or unknown; a divided card has them in its instances. `peers`:
    NVML's status of the link to another card, by that card's index, if it was asked for.
    """

    fields: Mapping[str, int | float] = {}
    texts: Mapping[str, str] = {}
    failures: Mapping[str, str] = {}
    processes: tuple[GpuProcess, ...] | None = None
    instances: tuple[InstanceReading, ...] = ()
    peers: Mapping[int, int] = {}
