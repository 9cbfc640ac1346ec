"""The kubelet's own file of who has which device ids, `kubelet_internal_checkpoint`.

It knows plain init containers, which the kubelet's list of pod resources leaves out, and it keeps pods that
are dead until devices are next allocated. Names of pods are not in it.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Struct

from fairlead.model.devices.kubelet import HeldDevices
from fairlead.model.refusal import Refusal


class WireHeld(Struct, gc=False):
    """`device_ids`: by NUMA node, `-1` where the devices have none."""

    pod_uid: str = msgspec.field(name="PodUID")
    container: str = msgspec.field(name="ContainerName")
    resource: str = msgspec.field(name="ResourceName")
    device_ids: dict[int, list[str] | None] | None = msgspec.field(name="DeviceIDs")


class WireCheckpointState(Struct, gc=False):
    entries: list[WireHeld] | None = msgspec.field(name="PodDeviceEntries")


class WireCheckpoint(Struct, gc=False):
    data: WireCheckpointState = msgspec.field(name="Data")


_decoder: Final = msgspec.json.Decoder(WireCheckpoint)


def parse_checkpoint(text: bytes) -> tuple[HeldDevices, ...] | Refusal:
    """All that is held, or why the file cannot be read. Half a file is no list at all.

    >>> parse_checkpoint(b'{"Data":{"PodDeviceEntries":null,"RegisteredDevices":{}},"Checksum":1}')
    ()
    >>> parse_checkpoint(b"{}").reason
    "the kubelet's checkpoint cannot be read: Object missing required field `Data`"
    """
    try:
        entries = _decoder.decode(text).data.entries or ()
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        return _unreadable(str(error))
    for entry in entries:
        if not (entry.pod_uid and entry.container and entry.resource):
            return _unreadable(f"an entry has pod `{entry.pod_uid}`, container `{entry.container}`, resource `{entry.resource}`")
    return tuple(_parse_held(entry) for entry in entries)


def _parse_held(entry: WireHeld) -> HeldDevices:
    ids = {each for of_numa in (entry.device_ids or {}).values() for each in of_numa or ()}
    return HeldDevices(entry.resource, tuple(sorted(ids)), entry.container, pod_uid=entry.pod_uid)


def _unreadable(why: str) -> Refusal:
    return Refusal(f"the kubelet's checkpoint cannot be read: {why}")
