"""What a node's devices said last, as a driver gives it: the input of the GPU exporter's page.

Raw driver units on purpose (they are what DCGM names promise): MHz, mW-derived watts, mJ, ns, percent 0..100;
the native families convert at the very end. Memory is in bytes as the driver told them, and beside these in
the whole MiB that DCGM's own fields are. None = not supported or not yet known: the series is
absent. Times are of the world's steady clock, except where "epoch" is said.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from fairlead.model.devices.gpu import GpuMode
from fairlead.model.devices.readings import EngineTime, GpuProcess

LEAST_STALE_SECONDS: Final = 15.0
"""An older value of the fast group is shown by nobody.

See docs/spec/telemetry.md#sampling-and-fault-isolation.
"""


class NamedProcess(Struct, frozen=True, gc=False):
    """One process on a card, told apart from the others of its container; figures as of
    `GpuProcess`.
    """

    pid: int
    name: str
    type: str
    memory_bytes: int | None = None
    sm_percent: float | None = None
    engines: EngineTime = EngineTime()


class DeviceProcess(Struct, frozen=True, gc=False):
    """What one container uses on one device. `memory_limit_bytes`: its grant (whole card when exclusive),
    None = of a card whose memory nobody knows.

    `pod` "": processes that no container was granted. `token`: of the device ids of shared memory, "" = none.
    `replica`: which of a card's time slices it has, "" = none. `members`: its processes one by one, where
    they can be seen. `claim`: labels of a card that it has by a resource claim. What it uses is None where
    nobody sees its processes, the driver does not say of one of them, or what was seen is too old.
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


class XidEvent(Struct, frozen=True, gc=False):
    """An XID the driver reported: code, how often since the exporter's start, when last (epoch seconds)."""

    xid: int
    count: int
    last_at: float


class FieldGroup(Struct, frozen=True, gc=False):
    """Values that are read together, every `every_seconds`; last at `read_at`."""

    fields: Mapping[str, int | float]
    read_at: float
    every_seconds: float


class CollectorRun(Struct, frozen=True, gc=False):
    """How the last run of one collector went, of one GPU or of the node (`gpu` "").

    `is_good` None: it has not run yet. `succeeded_at`: None = it never did. `errors`: how often it failed
    since the start, by kind.
    """

    collector: str
    gpu: str = ""
    is_good: bool | None = None
    seconds: float | None = None
    succeeded_at: float | None = None
    errors: Mapping[str, int] = {}


class MigInstance(Struct, frozen=True, gc=False):
    """One MIG instance of a card: its ids, what follows `MIG ` in its name, the fields that are its own.

    `seen` and `processes` as of a card.
    """

    gpu_instance: int
    compute_instance: int
    profile: str
    uuid: str
    fields: Mapping[str, int | float] = {}
    seen: tuple[GpuProcess, ...] | None = None
    processes: tuple[DeviceProcess, ...] = ()


class DeviceSample(Struct, frozen=True, gc=False):
    """The values of one GPU that were read last.

    `fields` maps DCGM field names (`DCGM_FI_DEV_GPU_UTIL`) to numbers in DCGM units, as of `sampled_at`;
    `DCGM_FI_DEV_FB_TOTAL_BYTES` and its like, which DCGM does not have, are bytes.
    Fields that DCGM prints as integers are ints, the others floats
    (docs/spec/telemetry.md#format-and-labels-of-dcgm-series, docs/spec/telemetry.md#dcgm-fields-from-nvml).
    `slower`: groups of more fields, which are read less often. `texts`: fields that are no numbers. `up`
    False: the card is lost, or stuck in a call; what it said before may still be here. `healthy` None: nobody
    judged the card yet. `instances`: of a card that is divided by MIG (`mig_mode` enabled; "" = the driver
    does not say). `seen`: the processes that the driver shows, None = not known, or already in `processes`.
    `reset_at`: when the card was seen to be reset (epoch seconds), None = never.
    `knows_holders`: whether `processes` has all containers that hold it, `knows_foreign`: and all others that
    run on it. `peers`: by the index of another card NVML's status of the NVLinks there (0 = good), where
    somebody asked.
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
    """Which cards are printed, by index, and which MIG instances, counted over all cards; None = all.

    `has_instances`: instances are chosen for themselves, and a card that is not stands for its own that are.
    Else a card has all of its own.
    """

    cards: frozenset[int] | None = None
    instances: frozenset[int] | None = None
    has_instances: bool = False


class UnnamedCard(Struct, frozen=True, gc=False):
    """A card that the driver could not show since the exporter's start: only the kernel's log tells of it.

    `pci_bus_id`: as the kernel spells it, `0000:3b:00`.
    """

    node: str
    pci_bus_id: str
    xids: tuple[XidEvent, ...]


class DeviceSnapshot(Struct, frozen=True, gc=False):
    """All devices as of `at`. `number` grows by one from each snapshot to the next; 0 = nobody was asked yet.

    `devices`: by node and index. A device that did not answer is here with the values it said last.
    `is_driver_up` False: the driver does not answer on this node, and `driver_error` says why.
    `collectors`: of the node; those of a device stand with it. `unnamed`: who is not among the devices.
    `cycle_seconds`: how long it took to ask all of them.
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
