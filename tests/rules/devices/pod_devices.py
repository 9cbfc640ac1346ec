"""Devices as the kubelet lists them, and the devices that pods hold."""

from __future__ import annotations

from fairlead.model.devices.gpu import Grant
from fairlead.model.devices.kubelet import GivenShare, HeldDevices
from fairlead.rules.devices.ids import token

MEMORY, WHOLE = "aliyun.com/gpu-mem", "nvidia.com/gpu"
IDS = ("GPU-a-_-0", "GPU-a-_-1")


def held(resource: str, *ids: str, pod: str = "p", container: str = "c") -> HeldDevices:
    return HeldDevices(resource, ids, container, "ns", pod)


def given(
    uuid: str = "GPU-b", pod: str = "p", uid: str = "u", ids: tuple[str, ...] = IDS, core: int = 0
) -> GivenShare:
    return GivenShare("ns", pod, uid, "c", Grant(uuid, 1, len(ids), 2154, core), token(MEMORY, ids))
