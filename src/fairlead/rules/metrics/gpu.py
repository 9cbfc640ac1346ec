"""Fairlead's own metrics of each device: `fairlead_gpu_*` in base units.

Specification: docs/spec/telemetry.md#device-metrics.

Fields of device samples are in driver units (MHz, MiB, mJ, ns, percent) until the tables below
scale them. A field that a device does not have has no series, never 0.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from functools import partial
from typing import Final

from msgspec import Struct, structs

from fairlead.model.devices.device import DeviceProcess, DeviceSample, MigInstance, UnnamedCard
from fairlead.model.devices.gpu import GpuMode
from fairlead.model.devices.xid import COUNTED_FROM_START
from fairlead.model.metric import Family, Key, MetricName
from fairlead.rules.devices.container_use import merged_use
from fairlead.rules.devices.health_checks import CHECKS
from fairlead.rules.devices.mig import gpu_instances

DEVICE_LABELS: Final = ("node_name", "gpu", "uuid", "model")
MIG_LABELS: Final = ("mig_gi_id", "mig_profile")
MIB: Final = 1 << 20
_PREFIX: Final = "DCGM_FI_DEV_"
_TOTAL: Final = _PREFIX + "FB_TOTAL_BYTES"

THROTTLE_REASONS: Final = {
    "gpu_idle": 0x1,
    "clocks_setting": 0x2,
    "power_cap": 0x4,
    "hw_slowdown": 0x8,
    "sync_boost": 0x10,
    "sw_thermal": 0x20,
    "hw_thermal": 0x40,
    "hw_power_brake": 0x80,
    "display_clocks": 0x100,
}

Value = Callable[[DeviceSample], float | int | None]
_Make = Callable[[MetricName, Sequence[DeviceSample], list[Key]], Family]
"""Makes a family from samples and their keys (`device_key`).

Families without extra labels share the keys.
"""


class _Part(Struct, frozen=True, gc=False):
    """One series of a family: a field times `scale`.

    `value`: the value of the family's extra label, "" for families without one. An integer `scale`
    keeps integer values integer; `per` divides exactly where no float factor could.
    """

    value: str
    field: str
    scale: int = 1
    per: int = 1


class _FieldFamily(Struct, frozen=True, gc=False):
    """A family that is a table of fields. `label` is the extra label, "" for none."""

    name: str
    type: str
    help: str
    parts: tuple[_Part, ...]
    label: str = ""


def _part(value: str, field: str, scale: int = 1, per: int = 1) -> _Part:
    return _Part(value, _PREFIX + field, scale, per)


def _one(
    name: str, help: str, field: str, scale: int = 1, per: int = 1, type: str = "gauge"
) -> _FieldFamily:
    return _FieldFamily(f"fairlead_gpu_{name}", type, help, (_part("", field, scale, per),))


def _many(name: str, help: str, label: str, *parts: _Part, type: str = "gauge") -> _FieldFamily:
    return _FieldFamily(f"fairlead_gpu_{name}", type, help, parts, label)


INSTANCE_BUSY: Final = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
"""How busy a MIG instance is, 0..1; the driver reports utilization only for undivided cards."""
_INSTANCE_PARTS: Final = {
    "utilization_ratio": _Part("", INSTANCE_BUSY),
    **{
        f"memory_{name.lower()}_bytes": _part("", f"FB_{name}_BYTES")
        for name in ("TOTAL", "USED", "FREE", "RESERVED")
    },
}
"""Fields that a MIG instance reports instead of its card."""


def _instance_part(table: _FieldFamily) -> _Part | None:
    return _INSTANCE_PARTS.get(table.name.removeprefix("fairlead_gpu_"))


def _labels(table: _FieldFamily) -> tuple[str, ...]:
    own = (table.label,) if table.label else ()
    return (*DEVICE_LABELS, *(MIG_LABELS if _instance_part(table) else own))


_TABLE: Final = (
    _one(
        "utilization_ratio",
        "Share of time in which the GPU ran at least one kernel.",
        "GPU_UTIL",
        per=100,
    ),
    _one(
        "memory_bandwidth_utilization_ratio",
        "Share of time in which device memory was read or written.",
        "MEM_COPY_UTIL",
        per=100,
    ),
    _one(
        "encoder_utilization_ratio",
        "Share of time in which the video encoder was busy.",
        "ENC_UTIL",
        per=100,
    ),
    _one(
        "decoder_utilization_ratio",
        "Share of time in which the video decoder was busy.",
        "DEC_UTIL",
        per=100,
    ),
    _one("memory_total_bytes", "Device memory in all.", "FB_TOTAL_BYTES"),
    _one(
        "memory_used_bytes",
        "Device memory in use, the driver's reserve left out.",
        "FB_USED_BYTES",
    ),
    _one("memory_free_bytes", "Device memory not in use.", "FB_FREE_BYTES"),
    _one(
        "memory_reserved_bytes", "Device memory the driver keeps for itself.", "FB_RESERVED_BYTES"
    ),
    _many(
        "temperature_celsius",
        "Temperature by sensor.",
        "sensor",
        _part("gpu", "GPU_TEMP"),
        _part("memory", "MEMORY_TEMP"),
    ),
    _one(
        "temperature_slowdown_celsius",
        "Temperature of the chip at which the hardware slows the card down.",
        "SLOWDOWN_TEMP",
    ),
    _one("power_watts", "Power draw of the board.", "POWER_USAGE"),
    _many(
        "clock_hertz",
        "Clock frequency by domain.",
        "clock",
        _part("sm", "SM_CLOCK", 1_000_000),
        _part("memory", "MEM_CLOCK", 1_000_000),
    ),
    _one("row_remap_pending", "1 when remapped rows wait for a reset.", "ROW_REMAP_PENDING"),
    _one("row_remap_failed", "1 when remapping of rows has failed.", "ROW_REMAP_FAILURE"),
    _one("retired_pages_pending", "1 when retired pages wait for a reset.", "RETIRED_PENDING"),
    _one(
        "recovery_action",
        (
            "What the driver asks for: 0 none, 1 reset, 2 reboot, 3 drain P2P, 4 drain and reset, "
            "5 IMEX, 6 bus reset, 7 system reboot."
        ),
        "GPU_RECOVERY_ACTION",
    ),
    _one(
        "energy_joules_total",
        "Energy used since the driver was loaded.",
        "TOTAL_ENERGY_CONSUMPTION",
        per=1000,
        type="counter",
    ),
    _many(
        "pcie_bytes_total",
        "Bytes over PCIe by direction.",
        "direction",
        _part("tx", "PCIE_TX_BYTES"),
        _part("rx", "PCIE_RX_BYTES"),
        type="counter",
    ),
    _many(
        "nvlink_bytes_total",
        "Bytes over all NVLinks by direction.",
        "direction",
        _part("tx", "NVLINK_TX_BYTES"),
        _part("rx", "NVLINK_RX_BYTES"),
        type="counter",
    ),
    _many(
        "throttle_seconds_total",
        "Time in which clocks were held down, by reason.",
        "reason",
        *(
            _part(reason, f"{field}_VIOLATION", per=10**9)
            for reason, field in {
                "power": "POWER",
                "thermal": "THERMAL",
                "sync_boost": "SYNC_BOOST",
                "board_limit": "BOARD_LIMIT",
                "low_utilization": "LOW_UTIL",
                "reliability": "RELIABILITY",
            }.items()
        ),
        type="counter",
    ),
    _many(
        "remapped_rows_total",
        "Memory rows remapped, by the kind of error that caused it.",
        "cause",
        _part("uncorrectable", "UNCORRECTABLE_REMAPPED_ROWS"),
        _part("correctable", "CORRECTABLE_REMAPPED_ROWS"),
        type="counter",
    ),
    _many(
        "retired_pages_total",
        "Memory pages retired, by the kind of error that caused it.",
        "cause",
        _part("single_bit", "RETIRED_SBE"),
        _part("double_bit", "RETIRED_DBE"),
        type="counter",
    ),
    _many(
        "nvlink_errors_total",
        (
            "NVLink errors of all links, by type; which types there are depends on the generation "
            "of the links."
        ),
        "type",
        *(
            _part(kind, f"NVLINK_{kind.upper()}_ERROR_COUNT_TOTAL")
            for kind in ("crc_flit", "crc_data", "replay", "recovery")
        ),
        *(
            _part(kind, f"NVLINK_COUNT_{field}")
            for kind, field in {
                "malformed_packet": "RX_MALFORMED_PACKET_ERRORS",
                "buffer_overrun": "RX_BUFFER_OVERRUN_ERRORS",
                "receive": "RX_ERRORS",
                "local_link_integrity": "LOCAL_LINK_INTEGRITY_ERRORS",
                "recovery_failed": "LINK_RECOVERY_FAILED_EVENTS",
            }.items()
        ),
        type="counter",
    ),
    _one("pcie_replays_total", "PCIe retries.", "PCIE_REPLAY_COUNTER", type="counter"),
    _one(
        "pcie_link_generation",
        "PCIe generation of the card's link now; it falls by itself while the card rests.",
        "PCIE_LINK_GEN",
    ),
    _one(
        "pcie_link_generation_max",
        "Highest PCIe generation that the card and its slot have.",
        "PCIE_MAX_LINK_GEN",
    ),
    _one("pcie_link_width", "PCIe lanes of the card's link now.", "PCIE_LINK_WIDTH"),
    _one(
        "pcie_link_width_max",
        "Most PCIe lanes that the card and its slot have.",
        "PCIE_MAX_LINK_WIDTH",
    ),
    _one(
        "ecc_mode",
        "1 when the card's memory is protected by ECC, 0 when ECC is off.",
        "ECC_CURRENT",
    ),
    _one("ecc_mode_pending", "The ECC mode that the next reset brings.", "ECC_PENDING"),
)


def _device(name: str, help: str, *extra: str, type: str = "gauge") -> MetricName:
    return MetricName(f"fairlead_gpu_{name}", type, (*DEVICE_LABELS, *extra), help)


INFO: Final = _device(
    "info",
    "1; what the card is.",
    "minor_number",
    "pci_bus_id",
    "serial",
    "driver_version",
    "cuda_version",
    "vbios_version",
    "mig_mode",
)
UP: Final = _device("up", "1 when the device answered its last sample.")
HEALTHY: Final = _device("healthy", "1 when the device may take work.")
HEALTH_CHECK: Final = _device(
    "health_check", "Health by check: 0 ok, 1 warning, 2 failed.", "check"
)
ALLOCATED: Final = _device(
    "allocated_ratio",
    "Part of the device, or of the MIG instance, given to containers, 0 to 1.",
    *MIG_LABELS,
)
CONTAINERS: Final = _device("containers", "Containers that hold a part of the device.")
GRANTABLE: Final = _device(
    "memory_grantable_bytes",
    (
        "Device memory that containers can be given: what the driver leaves; all of it where it "
        "is held whole or by turns."
    ),
)
FOREIGN: Final = _device(
    "foreign_processes", "Processes on the device that no container was granted."
)
FOREIGN_MEMORY: Final = _device(
    "memory_foreign_bytes", "Device memory of processes without a grant."
)
UNATTRIBUTED_MEMORY: Final = _device(
    "memory_unattributed_bytes",
    "Device memory in use that belongs to no container and no foreign process.",
)
POWER_LIMIT: Final = _device("power_limit_watts", "Power limit in force.")
THROTTLED: Final = _device("throttled", "1 when this reason holds clocks down now.", "reason")
XID_LAST: Final = _device(
    "xid_last_timestamp_seconds", "When the driver last reported this XID error.", "xid"
)
XID_ERRORS: Final = _device(
    "xid_errors_total",
    "XID errors reported by the driver since the exporter started.",
    "xid",
    type="counter",
)
ECC_ERRORS: Final = _device(
    "ecc_errors_total", "ECC errors by severity and scope.", "severity", "scope", type="counter"
)
NVLINK_UP: Final = _device(
    "nvlink_up", "1 when the NVLink is active or asleep, 0 when it is down.", "link"
)
_LINKS_UP: Final = (1, 2)
_LINK_STATES: Final = {str(link): f"{_PREFIX}NVLINK_STATE_L{link}" for link in range(18)}
_ECC: Final = (
    ("corrected", "volatile", _PREFIX + "ECC_SBE_VOL_TOTAL"),
    ("uncorrected", "volatile", _PREFIX + "ECC_DBE_VOL_TOTAL"),
    ("corrected", "aggregate", _PREFIX + "ECC_SBE_AGG_TOTAL"),
    ("uncorrected", "aggregate", _PREFIX + "ECC_DBE_AGG_TOTAL"),
)


_FIELD_NAMES: Final = tuple(
    MetricName(each.name, each.type, _labels(each), each.help) for each in _TABLE
)


def device_key(sample: DeviceSample) -> Key:
    """Values of `DEVICE_LABELS`."""
    return (sample.node, str(sample.index), sample.uuid, sample.model)


def gpu_families(
    samples: Sequence[DeviceSample],
    only: Container[str] | None = None,
    unnamed: Sequence[UnnamedCard] = (),
) -> list[Family]:
    """All device families, or `only` those of these names; series by (node, GPU).

    XIDs of `unnamed` cards have the PCI address as their `gpu`, and no uuid and no model, so that
    an alert names the card.
    """
    keys = [device_key(sample) for sample in samples]
    families = [
        make(metric, samples, keys)
        for metric, make in _MAKERS
        if only is None or metric.name in only
    ]
    return [_with_unnamed(family, unnamed) for family in families] if unnamed else families


def _with_unnamed(family: Family, unnamed: Sequence[UnnamedCard]) -> Family:
    if family.metric not in (XID_LAST, XID_ERRORS):
        return family
    found = [
        ((card.node, card.pci_bus_id, "", "", str(event.xid)), event)
        for card in unnamed
        for event in card.xids
    ]
    values = [event.last_at if family.metric == XID_LAST else event.count for _, event in found]
    return structs.replace(
        family, keys=[*family.keys, *(key for key, _ in found)], values=[*family.values, *values]
    )


def granted(sample: DeviceSample) -> list[DeviceProcess]:
    """Containers with a grant on the device or instances of it, each once, running or not."""
    return [process for process in _processes(sample) if process.pod]


def foreign(sample: DeviceSample) -> list[DeviceProcess]:
    """Processes on the device that no container was granted."""
    return [process for process in _processes(sample) if not process.pod]


def _processes(sample: DeviceSample) -> Sequence[DeviceProcess]:
    if not sample.instances:
        return sample.processes
    of_instances = (process for each in gpu_instances(sample) for process in each.processes)
    return merged_use([*sample.processes, *of_instances], is_one_memory=False)


def allocated_ratio(sample: DeviceSample) -> float | None:
    """The part of the device that is granted, 0..1.

    It is 1 for an exclusive holder, else the sum of the limits divided by the card's memory; for a
    divided card, the part of its instances that are granted. None when the device is down, its
    holders are unknown, or its limits cannot be compared with its memory.
    """
    holders = granted(sample)
    if not sample.up or not sample.knows_holders:
        return None
    if sample.instances:
        instances = gpu_instances(sample)
        return sum(_is_given(each) for each in instances) / len(instances)
    if any(process.allocate_mode == GpuMode.EXCLUSIVE for process in holders):
        return 1
    if not holders:
        return 0
    grantable = grantable_bytes(sample)
    limits = [process.memory_limit_bytes for process in holders]
    return (
        min(1.0, sum(limit or 0 for limit in limits) / grantable)
        if grantable and None not in limits
        else None
    )


def _is_given(instance: MigInstance) -> int:
    """1 when a container has the instance, else 0: an instance is granted as a whole."""
    return int(any(process.pod for process in instance.processes))


def grantable_bytes(sample: DeviceSample) -> int | float | None:
    """The memory that the card can grant: the limits of its containers are parts of it.

    Shares are parts of the whole MiB that the driver leaves
    (docs/spec/gpu-sharing.md#units-and-the-proportional-grant), so that all units of a card add up
    to it; a container that has the whole card, or has it in turn with others, may use all memory
    that the driver reports. For a divided card: the sum of its instances. None when the sizes are
    unknown.
    """
    if sample.instances:
        sizes = [each.fields.get(_TOTAL) for each in gpu_instances(sample)]
        return None if None in sizes else sum(size or 0 for size in sizes)
    total = sample.fields.get(_TOTAL)
    if total is None or any(process.allocate_mode != GpuMode.SHARE for process in granted(sample)):
        return total
    return max(0, total - sample.fields.get(_PREFIX + "FB_RESERVED_BYTES", 0)) // MIB * MIB


def _facts(sample: DeviceSample) -> Key:
    return (
        str(sample.minor),
        sample.pci_bus_id,
        sample.serial,
        sample.driver_version,
        sample.cuda_version,
        sample.vbios_version,
        sample.mig_mode,
    )


def _info(metric: MetricName, samples: Sequence[DeviceSample], keys: list[Key]) -> Family:
    return Family(
        metric,
        [(*key, *_facts(sample)) for key, sample in zip(keys, samples, strict=True)],
        [1] * len(samples),
    )


def _each(value: Value) -> _Make:
    return lambda metric, samples, keys: Family(metric, keys, [value(sample) for sample in samples])


def _fields(table: _FieldFamily) -> _Make:
    if not table.label:
        return _each(lambda sample: _field(sample, table.parts[0]))

    def make(metric: MetricName, samples: Sequence[DeviceSample], keys: list[Key]) -> Family:
        labelled = [(*key, part.value) for key in keys for part in table.parts]
        return Family(
            metric, labelled, [_field(sample, part) for sample in samples for part in table.parts]
        )

    return make


def _of_instances(
    of_card: Value, of_instance: Callable[[DeviceSample, MigInstance], float | int | None]
) -> _Make:
    """A family with series of MIG instances instead of the card, if the card has instances."""

    def make(metric: MetricName, samples: Sequence[DeviceSample], keys: list[Key]) -> Family:
        labelled: list[Key] = []
        values: list[float | int | None] = []
        for key, sample in zip(keys, samples, strict=True):
            for each in gpu_instances(sample) if sample.instances else ():
                labelled.append((*key, *mig_key(each)))
                values.append(of_instance(sample, each))
            if not sample.instances:
                labelled.append((*key, "", ""))
                values.append(of_card(sample))
        return Family(metric, labelled, values, omits_empty=True)

    return make


def mig_key(instance: MigInstance | None) -> Key:
    """Values of `MIG_LABELS`."""
    return (str(instance.gpu_instance), instance.profile) if instance else ("", "")


def _field(sample: DeviceSample, part: _Part) -> float | int | None:
    return _scaled(sample.fields.get(part.field), part)


def _own(part: _Part, _: DeviceSample, instance: MigInstance) -> float | int | None:
    return _scaled(instance.fields.get(part.field), part)


def _scaled(value: float | None, part: _Part) -> float | int | None:
    if value is None:
        return None
    return value * part.scale if part.per == 1 else value / part.per


def _labelled(values: Sequence[str], value: Callable[[DeviceSample, str], int | None]) -> _Make:
    def make(metric: MetricName, samples: Sequence[DeviceSample], keys: list[Key]) -> Family:
        labelled = [(*key, each) for key in keys for each in values]
        return Family(
            metric, labelled, [value(sample, each) for sample in samples for each in values]
        )

    return make


def _throttled(sample: DeviceSample, reason: str) -> int | None:
    return (
        None
        if sample.throttle_reasons is None
        else int(bool(sample.throttle_reasons & THROTTLE_REASONS[reason]))
    )


def _xid_last(metric: MetricName, samples: Sequence[DeviceSample], keys: list[Key]) -> Family:
    found = [
        (key, event)
        for key, sample in zip(keys, samples, strict=True)
        for event in sorted(sample.xids, key=lambda event: event.xid)
    ]
    return Family(
        metric,
        [(*key, str(event.xid)) for key, event in found],
        [event.last_at for _, event in found],
    )


def _xid_errors(metric: MetricName, samples: Sequence[DeviceSample], keys: list[Key]) -> Family:
    labelled: list[Key] = []
    counts: list[int] = []
    for key, sample in zip(keys, samples, strict=True):
        found = {event.xid: event.count for event in sample.xids}
        for xid in sorted({*found, *COUNTED_FROM_START}):
            labelled.append((*key, str(xid)))
            counts.append(found.get(xid, 0))
    return Family(metric, labelled, counts)


def _ecc(metric: MetricName, samples: Sequence[DeviceSample], keys: list[Key]) -> Family:
    labelled = [(*key, severity, scope) for key in keys for severity, scope, _ in _ECC]
    return Family(
        metric, labelled, [sample.fields.get(field) for sample in samples for _, _, field in _ECC]
    )


def _links(metric: MetricName, samples: Sequence[DeviceSample], keys: list[Key]) -> Family:
    """One series per link of a card: a card without NVLink has no series."""
    found = [
        ((*key, link), int(sample.fields[field] in _LINKS_UP))
        for key, sample in zip(keys, samples, strict=True)
        for link, field in _LINK_STATES.items()
        if field in sample.fields
    ]
    return Family(metric, [key for key, _ in found], [up for _, up in found])


def _unattributed(sample: DeviceSample) -> float | None:
    """Memory used by no known process; None = the use of a process is unknown."""
    used, attributed = sample.fields.get(_PREFIX + "FB_USED_BYTES"), _bytes_of(_processes(sample))
    return (
        None
        if used is None or attributed is None or not sample.knows_foreign
        else max(0, used - attributed)
    )


def _foreign_processes(sample: DeviceSample) -> int | None:
    if not sample.up or not sample.knows_foreign:
        return None
    return sum(process.processes or 0 for process in foreign(sample))


def _foreign_bytes(sample: DeviceSample) -> int | None:
    return _bytes_of(foreign(sample)) if sample.up and sample.knows_foreign else None


def _bytes_of(processes: Sequence[DeviceProcess]) -> int | None:
    """The sum of all processes; None = the use of one of them is unknown."""
    memory = [process.memory_used_bytes for process in processes]
    return None if None in memory else sum(used or 0 for used in memory)


def _maker(table: _FieldFamily) -> _Make:
    part = _instance_part(table)
    return (
        _fields(table)
        if part is None
        else _of_instances(partial(_field, part=table.parts[0]), partial(_own, part))
    )


_MAKERS: Final[tuple[tuple[MetricName, _Make], ...]] = (
    (INFO, _info),
    (UP, _each(lambda sample: int(sample.up))),
    (HEALTHY, _each(lambda sample: None if sample.healthy is None else int(sample.healthy))),
    (HEALTH_CHECK, _labelled(CHECKS, lambda sample, check: sample.health_checks.get(check))),
    (
        ALLOCATED,
        _of_instances(
            allocated_ratio,
            lambda sample, each: _is_given(each) if sample.up and sample.knows_holders else None,
        ),
    ),
    (
        CONTAINERS,
        _each(lambda sample: len(granted(sample)) if sample.up and sample.knows_holders else None),
    ),
    (FOREIGN, _each(_foreign_processes)),
    (GRANTABLE, _each(grantable_bytes)),
    *((metric, _maker(table)) for table, metric in zip(_TABLE, _FIELD_NAMES, strict=True)),
    (FOREIGN_MEMORY, _each(_foreign_bytes)),
    (UNATTRIBUTED_MEMORY, _each(_unattributed)),
    (POWER_LIMIT, _each(lambda sample: sample.power_limit_watts)),
    (THROTTLED, _labelled(tuple(THROTTLE_REASONS), _throttled)),
    (XID_LAST, _xid_last),
    (XID_ERRORS, _xid_errors),
    (ECC_ERRORS, _ecc),
    (NVLINK_UP, _links),
)
NAMES: Final = tuple(metric for metric, _ in _MAKERS)
"""Every family this module can print, for the metrics reference."""
