"""The last values of a node's devices in the driver's units: the input of the GPU exporter's page.

The units are those of DCGM, because DCGM's metric names promise them: MHz, watts from mW, mJ, ns,
percent 0..100; native families are converted last. Memory is in the driver's bytes, and in whole
MiB for DCGM's fields. None = not supported or not yet known: the series is absent. Times are of the
steady clock of the real or simulated world, unless "epoch" is mentioned.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from fairlead.model.devices.gpu import GpuMode
from fairlead.model.devices.kubelet import RegionCard
from fairlead.model.devices.readings import EngineTime, GpuProcess

LEAST_STALE_SECONDS: Final = 15.0
"""The least age at which a value of the fast group is stale and no longer printed, in seconds.

See docs/spec/telemetry.md#sampling-and-fault-isolation.
"""


class NamedProcess(Struct, frozen=True, gc=False):
    """One process on a card, where a container's processes are known.

    Figures as in `GpuProcess`.
    """

    pid: int
    name: str
    type: str
    memory_bytes: int | None = None
    sm_percent: float | None = None
    engines: EngineTime = EngineTime()


class DeviceProcess(Struct, frozen=True, gc=False):
    """What one container uses on one device.

    `memory_limit_bytes`: its grant (the whole card if exclusive), None = the card's memory is
    unknown.

    `pod` "": processes that belong to no container with a grant. `token`: of the device ids of
    shared memory, "" = none. `replica`: its time slice of the card, "" = none. `members`: its
    processes one by one, where they are visible. `claim`: labels of a card that it has by a
    resource claim. Usage is None where the processes are not visible, the driver has no value for
    one of them, or the last value is too old. `accounted_bytes`, `denied`,
    `unknown_allocators`: what the memory guard counts, None = it is not in the container.
    """

    namespace: str
    pod: str
    container: str
    pod_uid: str
    allocate_mode: GpuMode
    memory_used_bytes: int | None
    memory_limit_bytes: int | None
    sm_percent: float | None
    processes: int | None = 1
    core_limit_ratio: float | None = None
    token: str = ""
    replica: str = ""
    members: tuple[NamedProcess, ...] = ()
    claim: Mapping[str, str] = {}
    accounted_bytes: int | None = None
    denied: int | None = None
    unknown_allocators: int | None = None

    def with_counts(self, card: RegionCard | None) -> DeviceProcess:
        """With what the memory guard of the container counts on this device."""
        if card is None:
            return self
        return replace(
            self,
            accounted_bytes=card.used,
            denied=card.denied,
            unknown_allocators=card.unknown_allocators,
        )


class XidEvent(Struct, frozen=True, gc=False):
    """An XID from the driver: code, count since the exporter's start, last time (epoch seconds)."""

    xid: int
    count: int
    last_at: float


class FieldGroup(Struct, frozen=True, gc=False):
    """Values that are read together every `every_seconds`; the last time was `read_at`."""

    fields: Mapping[str, int | float]
    read_at: float
    every_seconds: float


class CollectorRun(Struct, frozen=True, gc=False):
    """Result of the last run of one collector, for one GPU or for the node (`gpu` "").

    `is_good` None: it has not run yet. `succeeded_at`: None = never. `errors`: number of failures
    since the start, by kind.
    """

    collector: str
    gpu: str = ""
    is_good: bool | None = None
    seconds: float | None = None
    succeeded_at: float | None = None
    errors: Mapping[str, int] = {}


class MigInstance(Struct, frozen=True, gc=False):
    """One MIG instance of a card: ids, the part of its name after `MIG `, and its own fields.

    `seen` and `processes`: as of a card.
    """

    gpu_instance: int
    compute_instance: int
    profile: str
    uuid: str
    fields: Mapping[str, int | float] = {}
    seen: tuple[GpuProcess, ...] | None = None
    processes: tuple[DeviceProcess, ...] = ()


class DeviceSample(Struct, frozen=True, gc=False):
    """The last values of one GPU.

    `fields` maps DCGM field names (`DCGM_FI_DEV_GPU_UTIL`) to numbers in DCGM units, as of
    `sampled_at`; `DCGM_FI_DEV_FB_TOTAL_BYTES` and the other `…_BYTES` fields, which DCGM does not
    have, are bytes. Fields that DCGM prints as integers are ints, the others floats
    (docs/spec/telemetry.md#format-and-labels-of-dcgm-series,
    docs/spec/telemetry.md#dcgm-fields-from-nvml). `slower`: groups of further fields, which are
    read less often. `texts`: fields that are no numbers.

    `up` False: the card is lost, or stuck in a call; its earlier values may still be present.
    `healthy` None: the card's health is not known yet. `instances`: of a card that is divided by
    MIG (`mig_mode` enabled; "" = unknown). `seen`: the processes that the driver lists, None =
    unknown, or already in `processes`. `reset_at`: when a reset of the card was observed (epoch
    seconds), None = never. `knows_holders`: whether `processes` has all containers that hold the
    card; `knows_foreign`: whether it also has all other processes on it. `peers`: NVML's status of
    the NVLinks to another card (0 = good), by that card's index, if it was asked for.
    """

    node: str
    index: int
    minor: int
    uuid: str
    pci_bus_id: str
    model: str
    driver_version: str
    healthy: bool | None
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
    slower: tuple[FieldGroup, ...] = ()
    texts: Mapping[str, str] = {}
    seen: tuple[GpuProcess, ...] | None = None
    instances: tuple[MigInstance, ...] = ()
    mig_mode: str = "disabled"
    peers: Mapping[int, int] = {}
    collectors: tuple[CollectorRun, ...] = ()
    reset_at: float | None = None
    knows_holders: bool = True
    knows_foreign: bool = True


class DeviceChoice(Struct, frozen=True, gc=False):
    """Which cards (by index) and MIG instances (numbered over all cards) are printed; None = all.

    `has_instances`: instances are chosen separately, and a card that is not chosen is printed with
    its chosen instances only. Otherwise a chosen card is printed with all its instances.
    """

    cards: frozenset[int] | None = None
    instances: frozenset[int] | None = None
    has_instances: bool = False


class UnnamedCard(Struct, frozen=True, gc=False):
    """A card that the driver has not listed since the exporter's start, only the kernel log has.

    `pci_bus_id`: in the kernel's spelling, `0000:3b:00`.
    """

    node: str
    pci_bus_id: str
    xids: tuple[XidEvent, ...]


class DeviceSnapshot(Struct, frozen=True, gc=False):
    """All devices as of `at`.

    `number` grows by one from snapshot to snapshot; 0 = none was made yet.

    `devices`: by node and index; a device that did not answer has its last values. `is_driver_up`
    False: the driver of the node does not answer, for the reason `driver_error`. `collectors`: of
    the node; each device has its own. `unnamed`: cards that are not among the devices.
    `cycle_seconds`: how long it took to read all devices.
    """

    number: int = 0
    at: float = 0.0
    devices: tuple[DeviceSample, ...] = ()
    is_driver_up: bool = True
    driver_error: str = ""
    collectors: tuple[CollectorRun, ...] = ()
    stuck_calls: int = 0
    unnamed: tuple[UnnamedCard, ...] = ()
    cycle_seconds: float | None = None
