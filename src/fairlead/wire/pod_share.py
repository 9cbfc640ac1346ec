"""Which GPUs do a pod's annotations name? Ours first, then the reference's, then the oldest (arena contract §5, sharing contract 1.4).

What a newcomer gets wrong: an annotation that does not parse is as good as none, and then the next dialect is *not* tried only
when the first one parsed; a pod without any usable text holds units nowhere, but is still listed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, TypeVar

import msgspec
from msgspec import Struct

from fairlead.model.pod import Pod
from fairlead.model.pod_share import NO_SHARE, PodShare
from fairlead.wire import names

Value = TypeVar("Value")
_ByContainerAndGpu = dict[str, dict[int, int]]


class WireGrant(Struct, gc=False):
    index: int
    units: int = 0
    core: int = 0


_grants: Final = msgspec.json.Decoder(dict[str, list[WireGrant]])
_units: Final = msgspec.json.Decoder(_ByContainerAndGpu)


def parse_pod_share(pod: Pod) -> PodShare:
    """What the pod's annotations grant; `NO_SHARE` when there is nothing usable."""
    if not pod.annotations:
        return NO_SHARE
    group = _indexes(pod.annotations.get(names.ANNOTATION_TOPOLOGY_GROUP, ""))
    visible = _indexes(pod.annotations.get(names.ANNOTATION_TOPOLOGY_VISIBLE, ""))
    own = _decoded(_grants, pod.annotations.get(names.ANNOTATION_ALLOCATION, ""))
    if own is not None:
        grants = [grant for each in own.values() for grant in each]
        units = _summed((grant.index, grant.units) for grant in grants)
        return PodShare(units, _summed((grant.index, grant.core) for grant in grants if grant.core), group, visible)
    return PodShare(_reference_units(pod), _by_gpu(pod.annotations.get(names.ANNOTATION_CORE_PERCENTAGE, "")) or {}, group, visible)


def _reference_units(pod: Pod) -> Mapping[int, int]:
    units = _by_gpu(pod.annotations.get(names.ANNOTATION_REFERENCE_ALLOCATION, ""))
    if units is not None:
        return units
    index = pod.annotations.get(names.ANNOTATION_GPU_INDEX, "")
    if not (index.isascii() and index.isdigit()):
        return {}
    return {int(index): sum(container.limits.get(names.GPU_MEMORY, 0) for container in pod.containers)}


def _by_gpu(text: str) -> dict[int, int] | None:
    """`{"<container>":{"<gpu>":amount}}` summed over containers."""
    decoded = _decoded(_units, text)
    if decoded is None:
        return None
    return _summed(item for each in decoded.values() for item in each.items())


def _summed(items: Iterable[tuple[int, int]]) -> dict[int, int]:
    total: dict[int, int] = {}
    for index, amount in items:
        total[index] = total.get(index, 0) + max(0, amount)
    return dict(sorted(total.items()))


def _indexes(text: str) -> tuple[int, ...]:
    """`"0,1"`; empty for anything else."""
    parts = [part.strip() for part in text.split(",")]
    return tuple(sorted(int(part) for part in parts)) if text and all(part.isascii() and part.isdigit() for part in parts) else ()


def _decoded(decoder: msgspec.json.Decoder[Value], text: str) -> Value | None:
    if not text:
        return None
    try:
        return decoder.decode(text)
    except (msgspec.MsgspecError, UnicodeError):
        return None
