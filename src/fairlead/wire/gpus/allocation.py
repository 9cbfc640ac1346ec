"""Pod annotations that record which GPU the scheduler gave to which container.

Specification: docs/spec/gpu-sharing.md#reading-grants.

There are several generations of these annotations; a pod's grants are read from one generation
only. An annotation that does not parse is no grant: the pod is listed without a GPU.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, TypeVar

import msgspec
from msgspec import Struct

from fairlead.model.actions import BindPod, WriteGrants
from fairlead.model.devices.gpu import Grant
from fairlead.model.pod import Container, GrantsByContainer, Pod
from fairlead.wire import names

Value = TypeVar("Value")
_NO_GRANTS: Final[GrantsByContainer] = {}
_CARD_MEMORY: Final = re.compile(r"(\d{1,9})\s*(MiB)?\Z")
_READ: Final = (
    names.ANNOTATION_ALLOCATION,
    names.ANNOTATION_REFERENCE_ALLOCATION,
    names.ANNOTATION_GPU_INDEX,
    names.ANNOTATION_TOPOLOGY_GROUP,
)
_WRITTEN_ONCE: Final = (
    names.ANNOTATION_GPU_ASSIGNED,
    names.ANNOTATION_REFERENCE_ASSIGNED,
    names.ANNOTATION_GPU_ASSUME_TIME,
    names.ANNOTATION_REFERENCE_ASSUME_TIME,
)


class WireGrant(Struct, gc=False):
    """One grant in the annotation of Fairlead."""

    uuid: str = ""
    index: int = 0
    units: int = 0
    mib: int | None = None
    core: int = 0


_own_grants: Final = msgspec.json.Decoder(dict[str, list[WireGrant]])
_units_by_gpu: Final = msgspec.json.Decoder(dict[str, dict[str, int]])
"""`{"<container index>": {"<gpu index>": units}}`."""
_limits: Final = msgspec.json.Decoder(dict[str, int])


def parse_grants(
    annotations: Mapping[str, str], containers: Sequence[Container]
) -> GrantsByContainer:
    """Grants by container name; under "" those of the whole pod (GPU topology).

    Empty when no generation has a usable value.

    >>> text = '{"app":[{"uuid":"GPU-1","index":2,"units":4,"mib":4301}]}'
    >>> parse_grants({"fairlead.io/gpu-allocation": text}, [])
    {'app': (Grant(uuid='GPU-1', index=2, units=4, memory_mib=4301, core_percent=0),)}
    >>> alibabas = {"scheduler.framework.gpushare.allocation": '{"0":{"1":4}}'}
    >>> parse_grants(alibabas, [Container("app")])
    {'app': (Grant(uuid='', index=1, units=4, memory_mib=None, core_percent=0),)}
    """
    if not annotations:
        return _NO_GRANTS
    for name, parse in _GENERATIONS.items():
        if text := annotations.get(name, ""):
            return parse(text, annotations, containers)
    return _NO_GRANTS


def may_grant(annotations: Mapping[str, str]) -> bool:
    """Whether an annotation of any generation is present."""
    return any(annotations.get(name) for name in _GENERATIONS)


def render_grants(grants: GrantsByContainer) -> str:
    """The text of Fairlead's annotation, `fairlead.io/gpu-allocation`."""
    wires = {
        container: [
            WireGrant(grant.uuid, grant.index, grant.units, grant.memory_mib, grant.core_percent)
            for grant in given
        ]
        for container, given in grants.items()
    }
    return _encoded(wires)


def render_bind(pod: Pod, grants: GrantsByContainer, card_units: int, now: float) -> dict[str, str]:
    """The annotations of all generations that are written when a pod is bound with these grants.

    `card_units`: units of the card, where the whole pod is on one card. `now`: unix seconds. Keys
    of Fairlead that the pod has and that do not apply become "".
    """
    positions = {container.name: str(position) for position, container in enumerate(pod.containers)}
    of_containers = [
        (positions[name], given) for name, given in grants.items() if name in positions
    ]
    units = {
        position: {str(grant.index): grant.units for grant in given}
        for position, given in of_containers
    }
    cores = {
        position: {str(grant.index): grant.core_percent for grant in given}
        for position, given in of_containers
    }
    indexes = {grant.index for given in grants.values() for grant in given}
    nanoseconds = str(round(now * 1_000_000) * 1000)
    written = {
        names.ANNOTATION_ALLOCATION: render_grants(grants),
        names.ANNOTATION_REFERENCE_ALLOCATION: _encoded(units),
        names.ANNOTATION_GPU_POD: str(pod.limits.get(names.GPU_MEMORY, 0)),
        names.ANNOTATION_GPU_ASSIGNED: "false",
        names.ANNOTATION_REFERENCE_ASSIGNED: "false",
        names.ANNOTATION_GPU_ASSUME_TIME: nanoseconds,
        names.ANNOTATION_REFERENCE_ASSUME_TIME: nanoseconds,
    }
    if len(indexes) == 1:
        written |= {
            names.ANNOTATION_GPU_INDEX: str(*indexes),
            names.ANNOTATION_GPU_DEVICE: str(card_units),
        }
    if any(percent for by_gpu in cores.values() for percent in by_gpu.values()):
        written[names.ANNOTATION_CORE_PERCENTAGE] = _encoded(cores)
    return {**{key: "" for key in names.GRANT_ANNOTATIONS if key in pod.annotations}, **written}


def render_action(action: BindPod | WriteGrants, now: float) -> dict[str, str]:
    """The annotations of a pod that is bound or whose grants are written; {} without grants.

    `now`: unix seconds.
    """
    if not action.grants:
        return {}
    written = render_bind(action.pod, action.grants, action.card_units, now)
    return (
        written
        if isinstance(action, BindPod) or action.is_first
        else anew(written, action.pod.annotations)
    )


def anew(bind: Mapping[str, str], present: Mapping[str, str]) -> dict[str, str]:
    """The annotations to write again on a pod whose grant was damaged.

    These are all that bind writes, except those that are written once and still present.

    >>> bind = {"fairlead.io/gpu-allocation": "{}", "ALIYUN_COM_GPU_MEM_ASSIGNED": "false"}
    >>> anew(bind, {"ALIYUN_COM_GPU_MEM_ASSIGNED": "true"})
    {'fairlead.io/gpu-allocation': '{}'}
    """
    return {
        key: text for key, text in bind.items() if key not in _WRITTEN_ONCE or not present.get(key)
    }


def parse_memory_limits(annotations: Mapping[str, str]) -> Mapping[str, int]:
    """MiB by container that the pod's owner asks as its memory limit.

    A value that does not parse, or is negative, is ignored.

    >>> parse_memory_limits({"fairlead.io/gpu-mem-limit-mib": '{"app":3500,"other":-1}'})
    {'app': 3500}
    """
    wished = _decoded(annotations.get(names.ANNOTATION_GPU_LIMIT_MIB, ""), _limits)
    return {name: mib for name, mib in wished.items() if mib > 0} if wished else {}


def parse_withheld(data: Mapping[str, str | None] | None) -> frozenset[int]:
    """GPU indexes that an operator took out of use: data of the ConfigMap `unhealthy-gpu-<node>`.

    Text that is no index is ignored.

    >>> sorted(parse_withheld({"gpus": "0, 3,x"}))
    [0, 3]
    """
    parts = [part.strip() for part in ((data or {}).get(names.UNHEALTHY_GPUS_KEY) or "").split(",")]
    return frozenset(int(part) for part in parts if _is_index(part))


def _encoded(value: object) -> str:
    return msgspec.json.encode(value).decode()


def parse_card_memory(labels: Mapping[str, str]) -> int | None:
    """MiB of one card of the node, from its labels; None when no label has it.

    >>> parse_card_memory({"aliyun.accelerator/nvidia_mem": "16130MiB"})
    16130
    >>> parse_card_memory({"nvidia.com/gpu.memory": "15360"})
    15360
    """
    text = (
        labels.get(names.LABEL_GPU_CARD_MEMORY) or labels.get(names.LABEL_GPU_PRODUCT_MEMORY) or ""
    )
    match = _CARD_MEMORY.match(text)
    return int(match[1]) if match and int(match[1]) > 0 else None


def _parse_own(
    text: str, annotations: Mapping[str, str], containers: Sequence[Container]
) -> GrantsByContainer:
    wires = _decoded(text, _own_grants) or {}
    if any(
        wire.units < 0 or wire.index < 0 or (wire.mib or 0) < 0 or wire.core < 0
        for given in wires.values()
        for wire in given
    ):
        return _NO_GRANTS
    return {
        container: tuple(
            Grant(wire.uuid, wire.index, wire.units, wire.mib, wire.core) for wire in given
        )
        for container, given in wires.items()
    }


def _parse_reference(
    text: str, annotations: Mapping[str, str], containers: Sequence[Container]
) -> GrantsByContainer:
    units, cores = (
        _decoded(text, _units_by_gpu),
        _decoded(annotations.get(names.ANNOTATION_CORE_PERCENTAGE, ""), _units_by_gpu) or {},
    )
    grants: dict[str, tuple[Grant, ...]] = {}
    for position, by_gpu in (units or {}).items():
        if not _is_index(position) or int(position) >= len(containers):
            return _NO_GRANTS
        percent = cores.get(position, {})
        given = [(index, count, percent.get(index, 0)) for index, count in by_gpu.items()]
        if not all(_is_index(index) and count > 0 and core >= 0 for index, count, core in given):
            return _NO_GRANTS
        grants[containers[int(position)].name] = tuple(
            Grant("", int(index), count, None, core) for index, count, core in given
        )
    return grants


def _parse_index(
    text: str, annotations: Mapping[str, str], containers: Sequence[Container]
) -> GrantsByContainer:
    """All gpu-mem limits of the pod, granted on one GPU."""
    if not _is_index(text):
        return _NO_GRANTS
    asked = (
        (container.name, container.limits.get(names.GPU_MEMORY, 0)) for container in containers
    )
    return {name: (Grant("", int(text), units),) for name, units in asked if units > 0}


def _parse_group(
    text: str, annotations: Mapping[str, str], containers: Sequence[Container]
) -> GrantsByContainer:
    """Whole cards of the pod, as `0,1`."""
    parts = [part.strip() for part in text.split(",")]
    if not all(map(_is_index, parts)):
        return _NO_GRANTS
    return {"": tuple(Grant("", int(part), 0) for part in parts)}


_GENERATIONS: Final = dict(
    zip(_READ, (_parse_own, _parse_reference, _parse_index, _parse_group), strict=True)
)


def _is_index(text: str) -> bool:
    """Whether the text is the number of a GPU or container: at most a few ASCII digits.

    int() would accept digits of other scripts and any length.
    """
    return text.isascii() and text.isdigit() and len(text) < 10


def _decoded(text: str, decoder: msgspec.json.Decoder[Value]) -> Value | None:
    if not text:
        return None
    try:
        return decoder.decode(text)
    except (msgspec.MsgspecError, UnicodeError):
        return None
