"""The `DCGM_CUSTOM_*` families that boards for the vendor's newer exporter read; off by default.

docs/spec/telemetry.md#compatibility-families. ILLEGAL means foreign: a process that no container
was granted. Label names are the vendor's own spelling, capitals and all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from fairlead.model.devices.device import DeviceProcess, DeviceSample, NamedProcess
from fairlead.model.devices.gpu import GpuMode
from fairlead.model.metric import Family, Key, MetricName
from fairlead.rules.metrics.gpu import MIB, allocated_ratio, foreign, granted

_DEVICE: Final = (
    "DriverVersion",
    "NodeName",
    "NodePoolId",
    "PodSource",
    "SupportDCGM",
    "UUID",
    "device",
    "gpu",
    "modelName",
)
_PROCESS: Final = (
    "AllocateMode",
    "ContainerName",
    "NamespaceName",
    "NodeName",
    "NodePoolId",
    "PodName",
    "PodSource",
    "ProcessId",
    "ProcessName",
    "ProcessType",
    "UUID",
    "device",
    "gpu",
    "modelName",
)
_MODES: Final = {GpuMode.EXCLUSIVE: 1, GpuMode.MIG: 1}
_SHARE: Final = 2


def _metric(name: str, labels: tuple[str, ...], help: str) -> MetricName:
    return MetricName(f"DCGM_CUSTOM_{name}", "gauge", labels, help)


ALLOCATE_MODE: Final = _metric(
    "ALLOCATE_MODE", _DEVICE, "How the GPU is allocated: 0 none, 1 exclusive, 2 share."
)
FB_TOTAL: Final = _metric("DEV_FB_TOTAL", _DEVICE, "Framebuffer memory in all (in MiB).")
FB_ALLOCATED: Final = _metric(
    "DEV_FB_ALLOCATED", _DEVICE, "Part of the framebuffer memory allocated (0 to 1)."
)
_WHAT: Final = {"": "the container's processes", "ILLEGAL_": "processes without a grant"}
_HELP: Final = {
    "MEM_USED": "Framebuffer memory used by {} (in MiB).",
    "SM_UTIL": "SM utilization of {} (in %).",
    "MEM_COPY_UTIL": "Memory utilization of {} (in %).",
    "ENCODE_UTIL": "Encoder utilization of {} (in %).",
    "DECODE_UTIL": "Decoder utilization of {} (in %).",
}
PROCESS_METRICS: Final = {
    (kind, name): _metric(f"{kind}PROCESS_{name}", _PROCESS, text.format(described))
    for kind, described in _WHAT.items()
    for name, text in _HELP.items()
}
CONTAINER_MEM: Final = _metric(
    "CONTAINER_MEM_ALLOCATED", _PROCESS, "Framebuffer memory granted to the container (in MiB)."
)
CONTAINER_CP: Final = _metric(
    "CONTAINER_CP_ALLOCATED",
    _PROCESS,
    "Part of the compute granted to the container (0 to 1); 0 where it is not limited.",
)
NAMES: Final = (
    ALLOCATE_MODE,
    FB_TOTAL,
    FB_ALLOCATED,
    *PROCESS_METRICS.values(),
    CONTAINER_MEM,
    CONTAINER_CP,
)

_Row = tuple[DeviceSample, DeviceProcess, NamedProcess | None]
"""A device, the use of it by a container or a foreign process, and one process of it, None =
processes are not reported one by one.
"""


def custom_families(samples: Sequence[DeviceSample]) -> list[Family]:
    """Families of devices, of containers' processes, of foreign processes, and of containers."""
    devices = [_device_key(sample) for sample in samples]
    held = [(sample, process) for sample in samples for process in granted(sample)]
    strangers = [
        (sample, process)
        for sample in samples
        for process in foreign(sample)
        if sample.knows_foreign
    ]
    rows = {"": _one_by_one(held), "ILLEGAL_": _one_by_one(strangers)}
    containers = [_process_key(sample, process, None) for sample, process in held]
    return [
        Family(ALLOCATE_MODE, devices, [_mode(sample) for sample in samples]),
        Family(
            FB_TOTAL, devices, [sample.fields.get("DCGM_FI_DEV_FB_TOTAL") for sample in samples]
        ),
        Family(FB_ALLOCATED, devices, [_as_double(allocated_ratio(sample)) for sample in samples]),
        *(
            Family(
                metric,
                [_process_key(*row) for row in rows[kind]],
                [_VALUES[name](*row[1:]) for row in rows[kind]],
            )
            for (kind, name), metric in PROCESS_METRICS.items()
        ),
        Family(CONTAINER_MEM, containers, [_limit(process) for _, process in held]),
        Family(
            CONTAINER_CP, containers, [float(process.core_limit_ratio or 0) for _, process in held]
        ),
    ]


def _one_by_one(found: Sequence[tuple[DeviceSample, DeviceProcess]]) -> list[_Row]:
    """A row for each process, and one row for a container without a process or whose processes are
    not reported one by one.
    """
    rows: list[_Row] = []
    for sample, process in found:
        rows += [
            (sample, process, member)
            for member in sorted(process.members, key=lambda each: each.pid)
        ]
        rows += [] if process.members else [(sample, process, None)]
    return rows


def _memory_used(process: DeviceProcess, member: NamedProcess | None) -> int | None:
    used = process.memory_used_bytes if member is None else member.memory_bytes
    return None if used is None else used // MIB


def _limit(process: DeviceProcess) -> int | None:
    return None if process.memory_limit_bytes is None else process.memory_limit_bytes // MIB


def _sm_percent(process: DeviceProcess, member: NamedProcess | None) -> float | None:
    return _as_double(process.sm_percent if member is None else member.sm_percent)


def _engine(name: str) -> Callable[[DeviceProcess, NamedProcess | None], float | None]:
    """A function that reads one engine; 0 for a container without a process, None = unknown."""

    def value(process: DeviceProcess, member: NamedProcess | None) -> float | None:
        if member is None:
            return None if process.processes != 0 else 0.0
        return _as_double(getattr(member.engines, name))

    return value


_VALUES: Final[dict[str, Callable[[DeviceProcess, NamedProcess | None], float | int | None]]] = {
    "MEM_USED": _memory_used,
    "SM_UTIL": _sm_percent,
    "MEM_COPY_UTIL": _engine("memory"),
    "ENCODE_UTIL": _engine("encoder"),
    "DECODE_UTIL": _engine("decoder"),
}


def _device_key(sample: DeviceSample) -> Key:
    return (
        sample.driver_version,
        sample.node,
        "",
        "",
        "1",
        sample.uuid,
        f"nvidia{sample.index}",
        str(sample.index),
        sample.model,
    )


def _process_key(sample: DeviceSample, process: DeviceProcess, member: NamedProcess | None) -> Key:
    process_labels = (str(member.pid), member.name, member.type) if member else ("", "", "")
    return (
        process.allocate_mode,
        process.container,
        process.namespace,
        sample.node,
        "",
        process.pod,
        "",
        *process_labels,
        sample.uuid,
        f"nvidia{sample.index}",
        str(sample.index),
        sample.model,
    )


def _mode(sample: DeviceSample) -> int:
    modes = {_MODES.get(process.allocate_mode, _SHARE) for process in granted(sample)}
    return max(modes, default=0)


def _as_double(value: float | None) -> float | None:
    return None if value is None else float(value)
