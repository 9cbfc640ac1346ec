"""The `DCGM_CUSTOM_*` families that boards for the vendor's newer GPU exporter read; off by default.

Telemetry contract 1.13. ILLEGAL means foreign: a process that no container was granted. Label names are the
vendor's own spelling, capitals and all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from fairlead.model.devices.device import DeviceProcess, DeviceSample
from fairlead.model.devices.gpu import GpuMode
from fairlead.model.metric import Family, Key, MetricName
from fairlead.rules.metrics.gpu import MIB, allocated_ratio, foreign, granted

_DEVICE: Final = ("DriverVersion", "NodeName", "NodePoolId", "PodSource", "SupportDCGM", "UUID", "device", "gpu", "modelName")
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


ALLOCATE_MODE: Final = _metric("ALLOCATE_MODE", _DEVICE, "How the GPU is allocated: 0 none, 1 exclusive, 2 share.")
FB_TOTAL: Final = _metric("DEV_FB_TOTAL", _DEVICE, "Framebuffer memory in all (in MiB).")
FB_ALLOCATED: Final = _metric("DEV_FB_ALLOCATED", _DEVICE, "Part of the framebuffer memory allocated (0 to 1).")
MEM_USED: Final = _metric("PROCESS_MEM_USED", _PROCESS, "Framebuffer memory used by the container's processes (in MiB).")
SM_UTIL: Final = _metric("PROCESS_SM_UTIL", _PROCESS, "SM utilization of the container's processes (in %).")
ILLEGAL_MEM_USED: Final = _metric("ILLEGAL_PROCESS_MEM_USED", _PROCESS, "Framebuffer memory used by processes without a grant (in MiB).")
ILLEGAL_SM_UTIL: Final = _metric("ILLEGAL_PROCESS_SM_UTIL", _PROCESS, "SM utilization of processes without a grant (in %).")
CONTAINER_MEM: Final = _metric("CONTAINER_MEM_ALLOCATED", _PROCESS, "Framebuffer memory granted to the container (in MiB).")
NAMES: Final = (ALLOCATE_MODE, FB_TOTAL, FB_ALLOCATED, MEM_USED, SM_UTIL, ILLEGAL_MEM_USED, ILLEGAL_SM_UTIL, CONTAINER_MEM)

Value = Callable[[DeviceProcess], float | int | None]


def custom_families(samples: Sequence[DeviceSample]) -> list[Family]:
    """Device families, then those of containers, then those of foreign processes."""
    devices = [_device_key(sample) for sample in samples]
    held = [(sample, process) for sample in samples for process in granted(sample)]
    strangers = [(sample, process) for sample in samples for process in foreign(sample)]
    return [
        Family(ALLOCATE_MODE, devices, [_mode(sample) for sample in samples]),
        Family(FB_TOTAL, devices, [sample.fields.get("DCGM_FI_DEV_FB_TOTAL") for sample in samples]),
        Family(FB_ALLOCATED, devices, [_as_double(allocated_ratio(sample)) for sample in samples]),
        _of_processes(MEM_USED, held, _memory_used),
        _of_processes(SM_UTIL, held, _sm_percent),
        _of_processes(ILLEGAL_MEM_USED, strangers, _memory_used),
        _of_processes(ILLEGAL_SM_UTIL, strangers, _sm_percent),
        _of_processes(CONTAINER_MEM, held, _limit),
    ]


def _memory_used(process: DeviceProcess) -> int | None:
    return None if process.memory_used_bytes is None else process.memory_used_bytes // MIB


def _sm_percent(process: DeviceProcess) -> float | None:
    return None if process.sm_percent is None else float(process.sm_percent)


def _limit(process: DeviceProcess) -> int | None:
    return None if process.memory_limit_bytes is None else process.memory_limit_bytes // MIB


def _of_processes(metric: MetricName, rows: Sequence[tuple[DeviceSample, DeviceProcess]], value: Value) -> Family:
    return Family(metric, [_process_key(*row) for row in rows], [value(process) for _, process in rows])


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


def _process_key(sample: DeviceSample, process: DeviceProcess) -> Key:
    return (
        process.allocate_mode,
        process.container,
        process.namespace,
        sample.node,
        "",
        process.pod,
        "",
        "",
        "",
        "",
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
