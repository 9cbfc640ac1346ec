"""Messages of the kubelet's device plugin API (`v1beta1`) and pod resources API (`v1`).

Each message is described by the numbers of its fields, and parsed into or rendered from Fairlead's
values: no other module uses protobuf classes. Other fields are ignored. Every `parse_` raises
ValueError for malformed bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from google.protobuf import message_factory
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError
from msgspec import Struct

from fairlead.model.devices.kubelet import (
    CdiDevices,
    ClaimedDevice,
    ContainerEdits,
    HeldDevices,
    OfferedDevice,
)

EMPTY: Final = b""
"""A message without fields."""

_STRING: Final = FieldDescriptorProto.TYPE_STRING
_BOOL: Final = FieldDescriptorProto.TYPE_BOOL
_INT32: Final = FieldDescriptorProto.TYPE_INT32
_SCALARS: Final = {"string": _STRING, "bool": _BOOL, "int32": _INT32}

_DEVICE_PLUGIN: Final[Mapping[str, str]] = {
    "DevicePluginOptions": "bool pre_start_required 1, bool get_preferred_allocation_available 2",
    "RegisterRequest": (
        "string version 1, string endpoint 2, string resource_name 3, DevicePluginOptions options 4"
    ),
    "Device": "string ID 1, string health 2",
    "ListAndWatchResponse": "Device* devices 1",
    "PreStartContainerRequest": "string* devices_ids 1",
    "ContainerPreferredAllocationRequest": (
        "string* available_deviceIDs 1, string* must_include_deviceIDs 2, int32 allocation_size 3"
    ),
    "PreferredAllocationRequest": "ContainerPreferredAllocationRequest* container_requests 1",
    "ContainerPreferredAllocationResponse": "string* deviceIDs 1",
    "PreferredAllocationResponse": "ContainerPreferredAllocationResponse* container_responses 1",
    "ContainerAllocateRequest": "string* devices_ids 1",
    "AllocateRequest": "ContainerAllocateRequest* container_requests 1",
    "EnvsEntry": "string key 1, string value 2",
    "Mount": "string container_path 1, string host_path 2, bool read_only 3",
    "DeviceSpec": "string container_path 1, string host_path 2, string permissions 3",
    "CDIDevice": "string name 1",
    "ContainerAllocateResponse": (
        "EnvsEntry* envs 1, Mount* mounts 2, DeviceSpec* devices 3, CDIDevice* cdi_devices 5"
    ),
    "AllocateResponse": "ContainerAllocateResponse* container_responses 1",
}
"""Fields of each message: type (`*` = repeated), name, number.

A map is a list of entries.
"""

_POD_RESOURCES: Final[Mapping[str, str]] = {
    "ContainerDevices": "string resource_name 1, string* device_ids 2",
    "ClaimResource": "string driver_name 2, string pool_name 3, string device_name 4",
    "DynamicResource": (
        "string claim_name 1, string claim_namespace 2, ClaimResource* claim_resources 4"
    ),
    "ContainerResources": (
        "string name 1, ContainerDevices* devices 2, DynamicResource* dynamic_resources 5"
    ),
    "PodResources": "string name 1, string namespace 2, ContainerResources* containers 3",
    "ListPodResourcesResponse": "PodResources* pod_resources 1",
}


class Registration(Struct, frozen=True):
    """A plugin's registration with a kubelet.

    `endpoint`: its socket's name in the kubelet's directory.
    """

    endpoint: str
    resource: str
    needs_start: bool = False
    version: str = "v1beta1"


class PreferenceRequest(Struct, frozen=True):
    """Request for the best `size` of the available ids, which include `must_include`."""

    available: tuple[str, ...]
    must_include: tuple[str, ...]
    size: int


def _message_classes(package: str, described: Mapping[str, str]) -> Mapping[str, Any]:
    file = FileDescriptorProto(name=f"{package}.proto", package=package, syntax="proto3")
    for name, fields in described.items():
        message = DescriptorProto(name=name)
        for field in fields.split(", "):
            kind, field_name, number = field.split()
            message.field.append(_field(package, kind, field_name, int(number)))
        file.message_type.append(message)
    pool = DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.{name}"))
        for name in described
    }


def _field(package: str, kind: str, name: str, number: int) -> FieldDescriptorProto:
    one = kind.removesuffix("*")
    label = (
        FieldDescriptorProto.LABEL_REPEATED if one != kind else FieldDescriptorProto.LABEL_OPTIONAL
    )
    if one in _SCALARS:
        return FieldDescriptorProto(name=name, number=number, label=label, type=_SCALARS[one])
    type_name = f".{package}.{one}"
    return FieldDescriptorProto(
        name=name,
        number=number,
        label=label,
        type=FieldDescriptorProto.TYPE_MESSAGE,
        type_name=type_name,
    )


_plugin: Final = _message_classes("v1beta1", _DEVICE_PLUGIN)
_resources: Final = _message_classes("v1", _POD_RESOURCES)


def render_registration(registration: Registration) -> bytes:
    return _bytes(
        _plugin["RegisterRequest"](
            version=registration.version,
            endpoint=registration.endpoint,
            resource_name=registration.resource,
            options=_options(registration.needs_start),
        )
    )


def render_options(needs_start: bool) -> bytes:
    return _bytes(_options(needs_start))


def render_devices(devices: Iterable[OfferedDevice]) -> bytes:
    device = _plugin["Device"]
    rows = [
        device(ID=each.id, health="Healthy" if each.is_healthy else "Unhealthy") for each in devices
    ]
    return _bytes(_plugin["ListAndWatchResponse"](devices=rows))


def parse_allocate(message: bytes) -> tuple[tuple[str, ...], ...]:
    """The ids, for each requested container."""
    request = _parsed(_plugin["AllocateRequest"], message)
    return tuple(tuple(each.devices_ids) for each in request.container_requests)


def render_allocated(given: Sequence[ContainerEdits | CdiDevices]) -> bytes:
    """What each container gets, in the order of the request."""
    rows = [_of_cdi(each) if isinstance(each, CdiDevices) else _of_edits(each) for each in given]
    return _bytes(_plugin["AllocateResponse"](container_responses=rows))


def parse_start(message: bytes) -> tuple[str, ...]:
    return tuple(_parsed(_plugin["PreStartContainerRequest"], message).devices_ids)


def parse_preference(message: bytes) -> tuple[PreferenceRequest, ...]:
    request = _parsed(_plugin["PreferredAllocationRequest"], message)
    return tuple(
        PreferenceRequest(
            tuple(each.available_deviceIDs),
            tuple(each.must_include_deviceIDs),
            each.allocation_size,
        )
        for each in request.container_requests
    )


def render_preferred(chosen: Sequence[Sequence[str]]) -> bytes:
    row = _plugin["ContainerPreferredAllocationResponse"]
    return _bytes(
        _plugin["PreferredAllocationResponse"](
            container_responses=[row(deviceIDs=ids) for ids in chosen]
        )
    )


def parse_pod_resources(message: bytes) -> tuple[HeldDevices, ...]:
    """The holders of devices, one per container and resource.

    The message has an entry per id.
    """
    held: dict[tuple[str, str, str, str], set[str]] = {}
    claimed: list[HeldDevices] = []
    for pod in _parsed(_resources["ListPodResourcesResponse"], message).pod_resources:
        for container in pod.containers:
            for devices in container.devices:
                key = (pod.namespace, pod.name, container.name, devices.resource_name)
                if not all(key):
                    raise ValueError("a holder of devices has no name")
                held.setdefault(key, set()).update(devices.device_ids)
            for claim in container.dynamic_resources:
                for each in claim.claim_resources:
                    device = ClaimedDevice(
                        claim.claim_name,
                        claim.claim_namespace,
                        each.driver_name,
                        each.pool_name,
                        each.device_name,
                    )
                    ids = (f"{each.pool_name}/{each.device_name}",)
                    claimed.append(
                        HeldDevices(
                            each.driver_name,
                            ids,
                            container.name,
                            pod.namespace,
                            pod.name,
                            claimed=device,
                        )
                    )
    listed = (
        HeldDevices(resource, tuple(sorted(ids)), container, namespace, pod)
        for (namespace, pod, container, resource), ids in held.items()
    )
    return (*listed, *claimed)


def _options(needs_start: bool) -> Any:
    return _plugin["DevicePluginOptions"](
        pre_start_required=needs_start, get_preferred_allocation_available=True
    )


def _of_cdi(devices: CdiDevices) -> Any:
    return _plugin["ContainerAllocateResponse"](
        cdi_devices=[_plugin["CDIDevice"](name=name) for name in devices.names]
    )


def _of_edits(edits: ContainerEdits) -> Any:
    mount, device, entry = _plugin["Mount"], _plugin["DeviceSpec"], _plugin["EnvsEntry"]
    return _plugin["ContainerAllocateResponse"](
        envs=[entry(key=name, value=value) for name, value in edits.environment.items()],
        mounts=[
            mount(container_path=m.container_path, host_path=m.host_path, read_only=m.is_read_only)
            for m in edits.mounts
        ],
        devices=[
            device(container_path=path, host_path=path, permissions="rw")
            for path in edits.device_nodes
        ],
    )


def _bytes(message: Any) -> bytes:
    encoded: bytes = message.SerializeToString()
    return encoded


def _parsed(kind: Any, message: bytes) -> Any:
    try:
        return kind.FromString(message)
    except DecodeError as error:
        raise ValueError(f"no {kind.DESCRIPTOR.name}: {error}") from error
