"""Memory that containers use above their grant: `fairlead_gpushare_over_grant_bytes`.

Specification: docs/spec/gpu-sharing.md#watchdog.

The labels are those of the exporter's container families: Prometheus overwrites `pod` and similar
labels with the scraped pod's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from fairlead.model.devices.device import DeviceProcess, DeviceSample
from fairlead.model.devices.gpu import GpuMode
from fairlead.model.metric import Family, MetricName
from fairlead.rules.devices.watchdog import (
    MemoryUse,
    MemoryWatchdog,
    OverGrantPolicy,
)

OVER_BYTES: Final = MetricName(
    "fairlead_gpushare_over_grant_bytes",
    "gauge",
    ("node_name", "namespace_name", "pod_name", "container_name", "uuid"),
    (
        "GPU memory that a container uses above its grant, where that is more than the contexts "
        "of its programs may take."
    ),
)
_MIB: Final = 1 << 20


def over_grant_families(samples: Sequence[DeviceSample]) -> list[Family]:
    """What the watchdogs of all nodes report of these cards, for a world without node agents."""
    nodes = {sample.uuid: sample.node for sample in samples}
    uses = [use for sample in samples for use in _uses(sample)]
    over = MemoryWatchdog().look(uses, OverGrantPolicy.REPORT)
    keys = [
        (
            nodes[each.use.uuid],
            each.use.namespace,
            each.use.pod,
            each.use.container,
            each.use.uuid,
        )
        for each in over
    ]
    return [Family(OVER_BYTES, keys, [each.over_bytes for each in over])]


def _uses(sample: DeviceSample) -> Iterator[MemoryUse]:
    for process in sample.processes:
        if process.pod and process.allocate_mode == GpuMode.SHARE:
            yield _use(sample.uuid, process)


def _use(uuid: str, process: DeviceProcess) -> MemoryUse:
    return MemoryUse(
        process.namespace,
        process.pod,
        process.pod_uid,
        process.container,
        uuid,
        used_mib=(process.memory_used_bytes or 0) / _MIB,
        granted_mib=(process.memory_limit_bytes or 0) / _MIB,
    )
