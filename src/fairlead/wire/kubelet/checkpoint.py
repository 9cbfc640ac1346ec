"""The kubelet's checkpoint of which container has which device ids (`kubelet_internal_checkpoint`).

It includes init containers, which the kubelet's pod resources API omits. It identifies pods by uid
only and keeps finished pods until their ids are allocated again. Its checksum depends on the
kubelet's version and is not verified.
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from msgspec import Meta, Struct

from fairlead.model.devices.kubelet import HeldDevices
from fairlead.model.refusal import Refusal

Name = Annotated[str, Meta(min_length=1)]


class _Entry(Struct, gc=False, rename="pascal"):
    pod_uid: Name = msgspec.field(name="PodUID")
    container_name: Name
    resource_name: Name
    device_ids: dict[int, list[str] | None] | None = msgspec.field(name="DeviceIDs")
    """By NUMA node, "-1" for ids without one."""


class _Data(Struct, gc=False, rename="pascal"):
    pod_device_entries: list[_Entry] | None
    """None: the kubelet writes an empty list as null."""


class _Checkpoint(Struct, gc=False, rename="pascal"):
    data: _Data


_decoder: Final = msgspec.json.Decoder(_Checkpoint)


def parse_checkpoint(text: bytes) -> tuple[HeldDevices, ...] | Refusal:
    """The device ids by container; a Refusal when the text is no checkpoint.

    >>> entry = b'"PodUID":"u","ContainerName":"c","ResourceName":"r"'
    >>> entry += b',"DeviceIDs":{"0":["b"],"-1":["a"]}'
    >>> [held] = parse_checkpoint(b'{"Data":{"PodDeviceEntries":[{' + entry + b'}]},"Checksum":1}')
    >>> held.resource, held.ids, held.container, held.pod_uid
    ('r', ('a', 'b'), 'c', 'u')
    """
    try:
        entries = _decoder.decode(text).data.pod_device_entries or ()
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        return Refusal(f"the kubelet's checkpoint of devices cannot be read: {error}")
    return tuple(
        HeldDevices(
            resource=entry.resource_name,
            ids=tuple(
                sorted(
                    {
                        device_id
                        for ids in (entry.device_ids or {}).values()
                        for device_id in ids or ()
                    }
                )
            ),
            container=entry.container_name,
            pod_uid=entry.pod_uid,
        )
        for entry in entries
    )
