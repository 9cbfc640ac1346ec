"""What one card said in one turn: fields of a group, who uses it, its MIG instances.

Keys are names of DCGM fields, values are in DCGM's units: ints where DCGM prints integers. What a card does
not tell is left out. PCIE_TX_BYTES, PCIE_RX_BYTES, NVLINK_TX_BYTES and NVLINK_RX_BYTES with the prefix of a
device are no fields of DCGM's but counters of our own families, in bytes.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct


class EngineTime(Struct, frozen=True, gc=False):
    """How much of the time one process kept memory and video engines busy, in percent; None = nobody says."""

    memory: float | None = None
    encoder: float | None = None
    decoder: float | None = None


class GpuProcess(Struct, frozen=True, gc=False):
    """One process on one card, or on one MIG instance. `pid`: of the node.

    `type`: C computes, G draws, M computes over MPS; more than one with a plus. `memory_bytes`, `sm_percent`
    None: the driver does not say.
    """

    pid: int
    type: str
    memory_bytes: int | None = None
    sm_percent: float | None = None
    engines: EngineTime = EngineTime()


class InstanceReading(Struct, frozen=True, gc=False):
    """One MIG instance: ids of GPU and compute instance, what follows `MIG ` in its name, what is its own.

    `processes` None: not asked, or not known. `failures`: why a collector lost its fields, by collector.
    """

    gpu_instance: int
    compute_instance: int
    profile: str
    uuid: str
    fields: Mapping[str, int | float] = {}
    processes: tuple[GpuProcess, ...] | None = None
    failures: Mapping[str, str] = {}


class GroupReading(Struct, frozen=True, gc=False):
    """`failures`: in words, by collector: device, fieldvalues, gpm, processes, mig.

    `processes` None: not asked, or not known; those of a divided card stand with its instances. `peers`: by
    the index of another card NVML's status of the way there, where somebody wants it.
    """

    fields: Mapping[str, int | float] = {}
    texts: Mapping[str, str] = {}
    failures: Mapping[str, str] = {}
    processes: tuple[GpuProcess, ...] | None = None
    instances: tuple[InstanceReading, ...] = ()
    peers: Mapping[int, int] = {}
