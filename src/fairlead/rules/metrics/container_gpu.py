"""What each container uses of each GPU it was given: `fairlead_container_gpu_*`.

Specification: docs/spec/telemetry.md#container-metrics.

A container with a grant and no process has series with 0 used. The driver reports no GPU time of
programs on a MIG instance: a container that has a whole instance gets the instance's own value.
Device values never appear here: sums over containers and sums over devices are two different, both
meaningful numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from typing import Final

from msgspec import structs

from fairlead.model.devices.device import DeviceProcess, DeviceSample, MigInstance
from fairlead.model.devices.gpu import GpuMode
from fairlead.model.metric import Family, Key, MetricName
from fairlead.rules.devices.container_use import percent_of_whole
from fairlead.rules.devices.mig import gpu_instances
from fairlead.rules.metrics.gpu import DEVICE_LABELS, INSTANCE_BUSY, MIG_LABELS, device_key, mig_key

LABELS: Final = (
    *DEVICE_LABELS,
    *MIG_LABELS,
    "namespace_name",
    "pod_name",
    "container_name",
    "pod_uid",
    "allocate_mode",
)


def _metric(name: str, help: str, type: str = "gauge") -> MetricName:
    return MetricName(f"fairlead_container_gpu_{name}", type, LABELS, help)


MEMORY_USED: Final = _metric(
    "memory_used_bytes", "Device memory used by the container's processes on this GPU."
)
MEMORY_LIMIT: Final = _metric(
    "memory_limit_bytes", "Device memory the container may use on this GPU."
)
UTILIZATION: Final = _metric(
    "utilization_ratio", "Part of the GPU's compute the container used, 0 to 1."
)
CORE_LIMIT: Final = _metric(
    "core_limit_ratio", "Part of the GPU's compute the container may use; absent when unlimited."
)
PROCESSES: Final = _metric("processes", "Processes of the container on this GPU.")
MEMORY_ACCOUNTED: Final = _metric(
    "memory_accounted_bytes",
    "Device memory that the cooperative memory guard in the container accounts on this GPU.",
)
DENIED: Final = _metric(
    "allocations_denied_total",
    "Allocations on this GPU that the cooperative memory guard in the container refused.",
    "counter",
)
UNKNOWN_ALLOCATORS: Final = _metric(
    "unknown_allocators_total",
    "Look-ups by the container of driver functions that look like allocators of memory and that "
    "the cooperative memory guard neither limits nor accounts.",
    "counter",
)
_VALUES: Final[dict[MetricName, Callable[[DeviceProcess], float | int | None]]] = {
    MEMORY_USED: lambda process: process.memory_used_bytes,
    MEMORY_LIMIT: lambda process: process.memory_limit_bytes,
    UTILIZATION: lambda process: (
        None if (percent := percent_of_whole(process)) is None else percent / 100
    ),
    CORE_LIMIT: lambda process: process.core_limit_ratio,
    PROCESSES: lambda process: process.processes,
    MEMORY_ACCOUNTED: lambda process: process.accounted_bytes,
    DENIED: lambda process: process.denied,
    UNKNOWN_ALLOCATORS: lambda process: process.unknown_allocators,
}
NAMES: Final = tuple(_VALUES)
_PROCESS_LABELS: Final = (*LABELS, "pid", "process_name", "process_type")


def _process_metric(name: str, help: str) -> MetricName:
    return MetricName(f"fairlead_process_gpu_{name}", "gauge", _PROCESS_LABELS, help)


PROCESS_MEMORY: Final = _process_metric(
    "memory_used_bytes", "Device memory used by one process on this GPU."
)
PROCESS_UTILIZATION: Final = _process_metric(
    "utilization_ratio", "The share of the GPU's compute used by one process, 0 to 1."
)
PROCESS_NAMES: Final = (PROCESS_MEMORY, PROCESS_UTILIZATION)


def container_families(
    samples: Sequence[DeviceSample], only: Container[str] | None = None
) -> list[Family]:
    """One series per container and GPU, by (node, GPU, namespace, pod, container).

    `only`: the families of these names, if given.
    """
    rows = [row for sample in samples for row in _rows(sample)]
    keys = [_key(*row) for row in rows]
    return [
        Family(metric, keys, [value(process) for _, _, process in rows], omits_empty=True)
        for metric, value in _VALUES.items()
        if only is None or metric.name in only
    ]


def process_families(samples: Sequence[DeviceSample]) -> list[Family]:
    """One series per process and GPU, by pid. Processes without a pod have empty pod labels."""
    rows = [row for sample in samples for row in _rows(sample, has_strangers=True)]
    found = [
        (row, member)
        for row in rows
        for member in sorted(row[2].members, key=lambda member: member.pid)
    ]
    keys = [(*_key(*row), str(member.pid), member.name, member.type) for row, member in found]
    used = [member.memory_bytes for _, member in found]
    worked = [
        None if member.sm_percent is None else min(1.0, member.sm_percent / 100)
        for _, member in found
    ]
    return [
        Family(PROCESS_MEMORY, keys, used, omits_empty=True),
        Family(PROCESS_UTILIZATION, keys, worked, omits_empty=True),
    ]


def _key(sample: DeviceSample, instance: MigInstance | None, process: DeviceProcess) -> Key:
    owner = (
        process.namespace,
        process.pod,
        process.container,
        process.pod_uid,
        process.allocate_mode,
    )
    return (*device_key(sample), *mig_key(instance), *owner)


def _rows(
    sample: DeviceSample, *, has_strangers: bool = False
) -> Iterator[tuple[DeviceSample, MigInstance | None, DeviceProcess]]:
    """`has_strangers`: also processes that no container was granted."""
    yield from (
        (sample, None, process)
        for process in sorted(_held(sample.processes, has_strangers), key=_name)
    )
    for instance in gpu_instances(sample) if sample.instances else ():
        held = sorted(_held(instance.processes, has_strangers), key=_name)
        if _has_one_holder(sample, instance):
            held = [_as_busy(process, instance) for process in held]
        yield from ((sample, instance, process) for process in held)


def _has_one_holder(sample: DeviceSample, instance: MigInstance) -> bool:
    """Whether one container has a whole GPU instance, that is, all its compute instances."""
    parts = [each for each in sample.instances if each.gpu_instance == instance.gpu_instance]
    holders = [process for process in instance.processes if process.pod]
    return len(holders) == 1 and all(
        any(process.pod for process in part.processes) for part in parts
    )


def _as_busy(process: DeviceProcess, instance: MigInstance) -> DeviceProcess:
    if process.allocate_mode != GpuMode.MIG or not process.pod:
        return process
    busy = instance.fields.get(INSTANCE_BUSY)
    return structs.replace(process, sm_percent=None if busy is None else round(100 * busy, 6))


def _held(processes: Sequence[DeviceProcess], has_strangers: bool) -> list[DeviceProcess]:
    return [process for process in processes if process.pod or has_strangers]


def _name(process: DeviceProcess) -> tuple[str, str, str]:
    return (process.namespace, process.pod, process.container)
