"""Classes for Kubernetes' protobuf messages, for the C parser.

They have only the fields that the model reads.

The parser skips undeclared fields by their length. Parts that many objects share, such as labels,
are declared as bytes, so that readers can look them up. Numbers and types come from the table in
`fields`. The parser refuses a message with text that is not UTF-8, so no row is half read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

from google.protobuf.message import DecodeError, Message

from fairlead.wire.kube.fields import Field, fields_by_number

__all__ = ["DecodeError", "message_classes"]

_READ: Final[Mapping[str, str]] = {
    "meta.ObjectMeta": (
        "name namespace uid resourceVersion ~creationTimestamp ~deletionTimestamp ~labels "
        "~annotations ~ownerReferences"
    ),
    "meta.OwnerReference": "apiVersion kind name uid controller",
    "core.Pod": "metadata spec status",
    "core.PodSpec": "nodeName containers priority priorityClassName "
    "preemptionPolicy schedulerName ~resources "
    "terminationGracePeriodSeconds ~volumes ?initContainers ?overhead ?schedulingGates",
    "core.VolumeSource": "persistentVolumeClaim",
    "core.PersistentVolumeClaimVolumeSource": "claimName",
    "core.Container": "name image ~resources restartPolicy",
    "core.PodStatus": (
        "phase reason message hostIP podIP ~startTime containerStatuses ~conditions "
        "nominatedNodeName ?initContainerStatuses"
    ),
    "core.ContainerStatus": "name ready started restartCount ~state ~lastState ~allocatedResources",
    "core.ContainerState": "waiting running terminated",
    "core.ContainerStateWaiting": "reason message",
    "core.ContainerStateRunning": "~startedAt",
    "core.ContainerStateTerminated": "reason message exitCode signal ~startedAt ~finishedAt",
    "core.PodCondition": "type status reason message ~lastTransitionTime",
    "core.Pod as MorePod": "spec=MoreSpec status=MoreStatus",
    "core.PodSpec as MoreSpec": (
        "initContainers ~overhead ~schedulingGates ~nodeSelector ~affinity ~tolerations"
    ),
    "core.PodStatus as MoreStatus": "initContainerStatuses",
    "core.Pod as PodChange": "metadata=Volatile ~status",
    "meta.ObjectMeta as Volatile": "resourceVersion ~managedFields",
    "meta.ObjectMeta as Name": "name namespace uid resourceVersion",
    "core.Node": "metadata spec status",
    "core.NodeSpec": "unschedulable ~taints",
    "core.NodeStatus": "~capacity ~allocatable ~addresses ~conditions nodeInfo",
    "core.NodeSystemInfo": "kubeletVersion containerRuntimeVersion osImage",
    "core.NodeCondition": "type status reason message ~lastTransitionTime",
    "core.Event": (
        "metadata involvedObject type reason message count ~eventTime ~firstTimestamp "
        "~lastTimestamp series"
    ),
    "core.ObjectReference": "kind namespace name uid",
    "core.EventSeries": "count ~lastObservedTime",
}
"""The declared fields of each message, by the names of the classes.

`~`: as bytes. `?`: the last one as bytes, a cheap test whether there are any. `=`: of this class.
"""
_BY_HAND: Final[Mapping[str, str]] = {
    "Time": "seconds:l nanos:i",
    "Entry": "key:s value:s",
    "WatchEvent": "type:s object:RawExtension",
    "RawExtension": "raw:y",
    "PodVolume": "name:y source:VolumeSource",
}
"""Messages of Kubernetes that belong to no API package, or that are embedded in JSON, with their
fields numbered from 1.
"""

_TYPES: Final = {"s": 9, "y": 12, "b": 8, "i": 5, "l": 3}
"""Protobuf's type number for each letter of the table."""
_BYTES, _MESSAGE = 12, 11
_OPTIONAL, _REPEATED = 1, 3
_PACKAGE: Final = "k8s"


@lru_cache(maxsize=1)
def message_classes() -> Mapping[str, Any]:
    """The class of each message by its name without package: `Pod`, `ObjectMeta`, `Time`.

    A class has `FromString(bytes)`, which raises protobuf's DecodeError; its messages have the
    fields as attributes, with their JSON names.
    """
    names = [*map(_class_name, _READ), *_BY_HAND]
    try:
        return _classes_in_c(names)
    except ImportError:  # protobuf without its C module works too, but slower
        return _classes_in_python(names)


def _classes_in_c(names: list[str]) -> dict[str, Any]:
    """The classes from the C module alone.

    It loads in a sixth of the time of `google.protobuf.descriptor_pool`, which first reads
    descriptions of descriptions.
    """
    from google._upb import _message

    pool = _message.DescriptorPool()
    pool.AddSerializedFile(_file())
    found = ((name, pool.FindMessageTypeByName(f"{_PACKAGE}.{name}")) for name in names)
    return {
        name: _message.MessageMeta(name, (Message,), {"DESCRIPTOR": each, "__module__": None})
        for name, each in found
    }


def _classes_in_python(names: list[str]) -> dict[str, Any]:
    from google.protobuf import descriptor_pool, message_factory

    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(_file())
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}"))
        for name in names
    }


def _file() -> bytes:
    """A FileDescriptorProto (google/protobuf/descriptor.proto) of all messages."""
    messages = [
        _described(_class_name(name), _fields(name.partition(" ")[0], asked.split()))
        for name, asked in _READ.items()
    ]
    messages += [_described(name, list(_numbered(text))) for name, text in _BY_HAND.items()]
    return (
        _text(1, "k8s.proto")
        + _text(2, _PACKAGE)
        + b"".join(_part(4, each) for each in messages)
        + _text(12, "proto3")
    )


def _fields(message: str, asked: list[str]) -> list[tuple[int, str, int, int, str]]:
    """Number, name, label, type and message of each requested field."""
    numbers = {field.name: (number, field) for number, field in fields_by_number(message).items()}
    found = []
    for word in asked:
        name, _, named = word.lstrip("~?").partition("=")
        number, field = numbers[name]
        label = _REPEATED if field.shape and word[0] != "?" else _OPTIONAL
        kind = _BYTES if word[0] in "~?" else _type(field)
        found.append(
            (
                number,
                field.name,
                label,
                kind,
                (named or _class_name(field.type)) if kind == _MESSAGE else "",
            )
        )
    return found


def _type(field: Field) -> int:
    return _MESSAGE if field.message else _TYPES[field.type]


def _numbered(text: str) -> Iterator[tuple[int, str, int, int, str]]:
    for number, word in enumerate(text.split(), 1):
        name, _, kind = word.partition(":")
        yield number, name, _OPTIONAL, _TYPES.get(kind, _MESSAGE), "" if kind in _TYPES else kind


def _described(name: str, fields: list[tuple[int, str, int, int, str]]) -> bytes:
    """A DescriptorProto.

    A single scalar is `optional`, in proto3 a `oneof` of one field, so that the reader can
    distinguish an absent value from an empty one.
    """
    parts, choices = [_text(1, name)], list[bytes]()
    for number, field, label, kind, message in fields:
        described = _text(1, field) + _number(3, number) + _number(4, label) + _number(5, kind)
        if message:
            described += _text(6, f".{_PACKAGE}.{message}")
        elif label == _OPTIONAL:
            described += _number(9, len(choices)) + _number(17, 1)
            choices.append(_part(8, _text(1, f"_{field}")))
        parts.append(_part(2, described))
    return b"".join(parts + choices)


def _class_name(name: str) -> str:
    """
    >>> _class_name("core.Pod"), _class_name("core.Pod as Other")
    ('Pod', 'Other')
    """
    return name.rpartition(" ")[2].rpartition(".")[2]


def _text(number: int, text: str) -> bytes:
    return _part(number, text.encode())


def _part(number: int, data: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _number(number: int, value: int) -> bytes:
    return _varint(number << 3) + _varint(value)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*out, value))
