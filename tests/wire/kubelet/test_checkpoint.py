"""The kubelet's checkpoint: what a real one wrote is read, and what is no checkpoint is no list."""

from __future__ import annotations

import pytest

from fairlead.model.devices.kubelet import HeldDevices
from fairlead.model.refusal import Refusal
from fairlead.wire.kubelet.checkpoint import parse_checkpoint

WRITTEN = (
    b'{"Data":{"PodDeviceEntries":['
    b'{"PodUID":"u-1","ContainerName":"prepare","ResourceName":"aliyun.com/gpu-mem","DeviceIDs":{"-1":["G-_-1","G-_-0"]},"AllocResp":"GgA="},'
    b'{"PodUID":"u-1","ContainerName":"app","ResourceName":"aliyun.com/gpu-mem","DeviceIDs":{"0":["G-_-2"],"1":["G-_-0"]},"AllocResp":""},'
    b'{"PodUID":"u-2","ContainerName":"app","ResourceName":"nvidia.com/gpu","DeviceIDs":{"-1":null},"AllocResp":null}],'
    b'"RegisteredDevices":{"aliyun.com/gpu-mem":["G-_-0"]}},"Checksum":3214906123}'
)


def test_every_container_is_there_with_its_ids_sorted() -> None:
    assert parse_checkpoint(WRITTEN) == (
        HeldDevices("aliyun.com/gpu-mem", ("G-_-0", "G-_-1"), "prepare", pod_uid="u-1"),
        HeldDevices("aliyun.com/gpu-mem", ("G-_-0", "G-_-2"), "app", pod_uid="u-1"),
        HeldDevices("nvidia.com/gpu", (), "app", pod_uid="u-2"),
    )


def test_half_a_checkpoint_is_refused() -> None:
    assert all(isinstance(parse_checkpoint(WRITTEN[:length]), Refusal) for length in range(len(WRITTEN)))


@pytest.mark.parametrize(
    "garbage",
    [
        b"",
        b"null",
        b"[]",
        b"\xff\xfe",
        b"\0" * 4096,
        b"[" * 100_000,
        b'{"Data":null}',
        b'{"Data":{}}',
        b'{"Data":{"PodDeviceEntries":{}}}',
        b'{"Data":{"PodDeviceEntries":[null]}}',
        b'{"Data":{"PodDeviceEntries":[{"PodUID":"u","ContainerName":"c","ResourceName":"r"}]}}',
        # Before 1.20 ids were a plain list.
        b'{"Data":{"PodDeviceEntries":[{"PodUID":"u","ContainerName":"c","ResourceName":"r","DeviceIDs":["a"]}]}}',
        b'{"Data":{"PodDeviceEntries":[{"PodUID":"u","ContainerName":"c","ResourceName":"r","DeviceIDs":{"x":["a"]}}]}}',
        b'{"Data":{"PodDeviceEntries":[{"PodUID":"","ContainerName":"c","ResourceName":"r","DeviceIDs":{"0":["a"]}}]}}',
    ],
)
def test_garbage_is_refused_in_one_sentence(garbage: bytes) -> None:
    refused = parse_checkpoint(garbage)
    assert isinstance(refused, Refusal)
    assert refused.reason.startswith("the kubelet's checkpoint cannot be read: ")
