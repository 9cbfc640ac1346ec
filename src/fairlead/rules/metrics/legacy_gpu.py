"""The `nvidia_gpu_*` families that the reference Nodes board and upstream arena read.

docs/spec/telemetry.md#compatibility-families. Every device has exactly one series that is not
`share`, independent of its holders, so that `allocate_mode!="share"` counts each card once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fairlead.model.devices.device import DeviceProcess, DeviceSample
from fairlead.model.devices.gpu import GpuMode
from fairlead.model.metric import Family, Key, MetricName
from fairlead.rules.devices.attribution import WHOLE_ENTITY, device_holder
from fairlead.rules.devices.container_use import percent_of_whole
from fairlead.rules.metrics.gpu import granted

_LABELS: Final = (
    "allocate_mode",
    "container_name",
    "minor_number",
    "name",
    "namespace_name",
    "node_name",
    "pod_name",
    "uuid",
)

DUTY_CYCLE: Final = MetricName(
    "nvidia_gpu_duty_cycle",
    "gauge",
    _LABELS,
    (
        "Percent of time over the past sample period during which one or more kernels were "
        "executing on the GPU device"
    ),
)
MEMORY_TOTAL: Final = MetricName(
    "nvidia_gpu_memory_total_bytes", "gauge", _LABELS, "Total memory of the GPU device in bytes"
)
MEMORY_USED: Final = MetricName(
    "nvidia_gpu_memory_used_bytes", "gauge", _LABELS, "Memory used of the GPU device in bytes"
)
POWER: Final = MetricName(
    "nvidia_gpu_power_usage_milliwatts",
    "gauge",
    _LABELS,
    "Power usage of the GPU device in milliwatts",
)
TEMPERATURE: Final = MetricName(
    "nvidia_gpu_temperature_celsius", "gauge", _LABELS, "Temperature of the GPU device in celsius"
)
NUM_DEVICES: Final = MetricName(
    "nvidia_gpu_num_devices", "gauge", ("node_name",), "Number of GPU devices"
)
NAMES: Final = (DUTY_CYCLE, MEMORY_TOTAL, MEMORY_USED, POWER, TEMPERATURE, NUM_DEVICES)


def legacy_families(samples: Sequence[DeviceSample]) -> list[Family]:
    """The six families.

    A device that does not answer has no series, but counts in `num_devices`.
    """
    devices = [(_device_key(sample), sample) for sample in samples if sample.fields]
    shares = [
        (_share_key(sample, process), sample, process)
        for _, sample in devices
        for process in _sharing(sample)
    ]
    keys = [key for key, _ in devices]
    all_keys = keys + [key for key, _, _ in shares]
    totals = [_scaled(sample, "FB_TOTAL_BYTES", 1) for _, sample in devices]
    share_totals = [_scaled(sample, "FB_TOTAL_BYTES", 1) for _, sample, _ in shares]
    used = [_scaled(sample, "FB_USED_BYTES", 1) for _, sample in devices]
    counts: dict[str, int] = {}
    for sample in samples:
        counts[sample.node] = counts.get(sample.node, 0) + 1
    return [
        Family(
            DUTY_CYCLE,
            all_keys,
            [_scaled(s, "GPU_UTIL", 1) for _, s in devices]
            + [percent_of_whole(process) for _, _, process in shares],
        ),
        Family(MEMORY_TOTAL, all_keys, totals + share_totals),
        Family(
            MEMORY_USED, all_keys, used + [process.memory_used_bytes for _, _, process in shares]
        ),
        Family(POWER, keys, [_scaled(sample, "POWER_USAGE", 1000) for _, sample in devices]),
        Family(TEMPERATURE, keys, [_scaled(sample, "GPU_TEMP", 1) for _, sample in devices]),
        Family(NUM_DEVICES, [(node,) for node in counts], list(counts.values())),
    ]


def _device_key(sample: DeviceSample) -> Key:
    holder = device_holder(sample.processes)
    mode = GpuMode.EXCLUSIVE if holder.container else GpuMode.NONE
    if mode == GpuMode.NONE:
        return (mode, "", str(sample.minor), sample.model, "", sample.node, "", sample.uuid)
    return (
        mode,
        holder.container,
        str(sample.minor),
        sample.model,
        holder.namespace,
        sample.node,
        holder.pod,
        sample.uuid,
    )


def _share_key(sample: DeviceSample, process: DeviceProcess) -> Key:
    names = (sample.model, process.namespace, sample.node, process.pod, sample.uuid)
    return (GpuMode.SHARE, process.container, str(sample.minor), *names)


def _sharing(sample: DeviceSample) -> list[DeviceProcess]:
    """Containers of a device that several containers may hold, by namespace, pod and name.

    Processes without a grant are left out.
    """
    shares = [process for process in granted(sample) if process.allocate_mode not in WHOLE_ENTITY]
    return sorted(shares, key=lambda process: (process.namespace, process.pod, process.container))


def _scaled(sample: DeviceSample, field: str, scale: int) -> float | None:
    value = sample.fields.get(f"DCGM_FI_DEV_{field}")
    return None if value is None else value * scale
