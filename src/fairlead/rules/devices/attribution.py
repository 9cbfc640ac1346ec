"""Attribution of a device's series to the pod that has the device for itself.

Specification: docs/spec/telemetry.md#attribution-rules.

A shared GPU is attributed to no pod: with one of its pods on device series, sums by pod would be
wrong. Containers on shared GPUs have families of their own (`rules/metrics/container_gpu`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from fairlead.model.devices.device import DeviceProcess
from fairlead.model.devices.gpu import GpuMode

WHOLE_ENTITY = (GpuMode.EXCLUSIVE, GpuMode.MIG)


class DeviceHolder(Struct, frozen=True, gc=False):
    """The container that has a device for itself.

    `container` is "" if several containers of one pod have it.
    """

    namespace: str = ""
    pod: str = ""
    container: str = ""
    pod_uid: str = ""
    claim: Mapping[str, str] = {}


NO_HOLDER = DeviceHolder()


def device_holder(processes: Sequence[DeviceProcess]) -> DeviceHolder:
    """The one pod (and container) that holds the whole device.

    `NO_HOLDER` for shared devices and for several pods. A process without a grant (no pod) holds
    nothing and takes the device from no holder.

    >>> device_holder([DeviceProcess("ns", "p", "c", "u", GpuMode.EXCLUSIVE, 1, 2, 3)]).container
    'c'
    >>> device_holder([DeviceProcess("ns", "p", "c", "u", GpuMode.SHARE, 1, 2, 3)]) == NO_HOLDER
    True
    """
    holders = [process for process in processes if process.pod]
    if not holders or any(process.allocate_mode not in WHOLE_ENTITY for process in holders):
        return NO_HOLDER
    first = holders[0]
    if any(process.pod != first.pod or process.namespace != first.namespace for process in holders):
        return NO_HOLDER
    is_one = all(process.container == first.container for process in holders)
    return DeviceHolder(
        first.namespace, first.pod, first.container if is_one else "", first.pod_uid, first.claim
    )
