"""One full sample of one device, as a driver gives it: the input of the GPU exporter's page.

Raw driver units on purpose (they are what DCGM names promise): MHz, mW-derived watts, mJ, ns, MiB, percent
0..100; the native families convert at the very end. None = not supported or not yet known: the series is
absent.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from fairlead.model.devices.gpu import GpuMode


class DeviceProcess(Struct, frozen=True, gc=False):
    """What one container uses on one device. `memory_limit_mib` is its grant (whole card when exclusive)."""

    namespace: str
    pod: str
    container: str
    pod_uid: str
    allocate_mode: GpuMode
    memory_used_mib: float
    memory_limit_mib: float
    sm_percent: float
    processes: int = 1
    core_limit_ratio: float | None = None


class XidEvent(Struct, frozen=True, gc=False):
    """An XID the driver reported: code, how often since the exporter's start, when last (epoch seconds)."""

    xid: int
    count: int
    last_at: float


class DeviceSample(Struct, frozen=True, gc=False):
    """All values of one GPU at one instant.

    `fields` maps DCGM field names (`DCGM_FI_DEV_GPU_UTIL`) to numbers in DCGM units. Fields that DCGM prints
    as integers are ints, the others floats (telemetry contract 1.4, 1.5).
    """

    node: str
    index: int
    minor: int
    uuid: str
    pci_bus_id: str
    model: str
    driver_version: str
    healthy: bool
    fields: Mapping[str, int | float]
    power_limit_watts: float | None = None
    serial: str = ""
    cuda_version: str = ""
    vbios_version: str = ""
    throttle_reasons: int | None = None
    health_checks: Mapping[str, int] = {}
    xids: tuple[XidEvent, ...] = ()
    processes: tuple[DeviceProcess, ...] = ()
    up: bool = True
    sampled_at: float = 0.0
