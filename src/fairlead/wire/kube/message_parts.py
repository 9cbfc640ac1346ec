"""Parts that many protobuf objects have in common, each parsed once and found by its bytes.

Labels, owners, amounts, times and conditions with equal bytes share one parsed value. Each table
keeps a limited number of values; a part that is not in its table is parsed again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from sys import intern
from typing import Any, Final, NamedTuple, TypeVar

import msgspec
from msgspec import Raw

from fairlead.model.node import Condition, Taint
from fairlead.model.node_choice import NodeChoice
from fairlead.model.pod import Container, ContainerState, Owner
from fairlead.model.resources import NOTHING, Amounts
from fairlead.model.sharing import name_shared_gpus
from fairlead.wire import names
from fairlead.wire.gpus.allocation import may_grant, parse_memory_limits
from fairlead.wire.kube.forms import UnreadableProtobuf
from fairlead.wire.kube.messages import DecodeError, message_classes
from fairlead.wire.kube.node_choice import parse_node_choice
from fairlead.wire.kube.objects import asked_and_limits, is_informative, kept_annotations
from fairlead.wire.kube.protobuf import parse_message, parse_quantity_entry, parse_text_entry
from fairlead.wire.kube.quantity import parse_amounts

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

_KEPT_AT_MOST: Final = 8_192
_KEPT_BEGIN_BYTES: Final = 8
_KEPT_BEGINS: Final = frozenset(
    (more + each.encode())[:_KEPT_BEGIN_BYTES]
    for each in names.KEPT_ANNOTATION_PREFIXES
    for more in (b"", b"\1", b"\2")
)
"""First bytes of entries with annotations that may be kept, from the third byte of the entry: the
begin of the key, after the second byte of its length if it is long. A key has at most 317 bytes.
"""
_SINCE: Final = rb"\x12\x04True\x1a\0\x22\x08(%b\x08.....\x10\0)\x2a\0\x32\0%%b"
_SOUND: Final = re.compile(
    b"|".join(
        rb"\n\x19PodReadyToStartContainers%b\n\x0bInitialized%b\n\x05Ready%b\n\x0fContainersReady%b\n\x0cPodScheduled%b"
        % (*((_SINCE % b"?:") % generation,) * 4, (_SINCE % b"") % generation)
        for generation in (rb"\x38[\0-\x7f]", b"")
    ),
    re.S,
).fullmatch
"""All conditions of a healthy pod in the order of kubelets.

With and without an observed generation: True since some time, without reason and message. Only the
time of `PodScheduled` is kept.
"""
_MICROSECONDS: Final = 10**6
_USUAL_TIME_BYTES: Final = 8
"""Bytes of a time in whole seconds since 1978, without nanoseconds."""
_GO_ON_BITS: Final = sum(0x80 << 7 * place for place in range(4))

_class = message_classes()
_Time, _State = _class["Time"].FromString, _class["ContainerState"].FromString
_Owner, _Entry = _class["OwnerReference"].FromString, _class["Entry"].FromString
_PodCondition, _NodeCondition = (
    _class["PodCondition"].FromString,
    _class["NodeCondition"].FromString,
)


class Memo(dict[Key, Value]):
    """Values by key, each made by `make` at the first request.

    At most `_KEPT_AT_MOST` are kept.

    Raises ValueError for a key that `make` cannot parse.
    """

    def __init__(self, make: Callable[[Key], Value]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, key: Key) -> Value:
        try:
            made = self._make(key)
        except DecodeError as error:
            raise UnreadableProtobuf(f"a part of it cannot be read: {error}") from error
        if len(self) >= _KEPT_AT_MOST:
            self.clear()
        self[key] = made
        return made


# metadata


Kept = tuple[Mapping[str, str], bool, Mapping[str, int]]
"""The annotations of an object that Fairlead reads, and what a pod's annotations contain.

Whether they name GPUs (only the pod's containers make that a grant), and its limits of GPU memory
in MiB by container.
"""
NOTHING_KEPT: Final[Kept] = {}, False, {}


def read_annotations(raws: Iterable[bytes]) -> Kept:
    """The kept annotations among all annotation entries of an object."""
    kept = tuple([raw for raw in raws if raw[2:10] in _KEPT_BEGINS])
    return _kept_sets[kept] if kept else NOTHING_KEPT


def _make_kept(raws: tuple[bytes, ...]) -> Kept:
    annotations = kept_annotations(dict(map(parse_text_entry, raws)))
    return annotations, may_grant(annotations), parse_memory_limits(annotations)


def _make_label(raw: bytes) -> tuple[str, str]:
    entry = _Entry(raw)
    return intern(entry.key), intern(entry.value)


def _make_owner(raw: bytes) -> Owner:
    owner = _Owner(raw)
    return Owner(owner.kind, owner.name, owner.uid, owner.controller, owner.apiVersion)


class _Times(Memo[bytes, float | None]):
    """Epoch seconds; None for a time of no bytes, which is null in JSON."""

    def __missing__(self, raw: bytes) -> float | None:
        if len(raw) != _USUAL_TIME_BYTES:
            return super().__missing__(raw)
        tag, a, b, c, d, e, tag_of_nanos, nanos = raw
        if tag != 0x08 or tag_of_nanos != 0x10 or nanos or not a & b & c & d > 0x7F >= e:
            return super().__missing__(raw)
        if len(self) >= _KEPT_AT_MOST:
            self.clear()
        made = self[raw] = float(a + (b << 7) + (c << 14) + (d << 21) + (e << 28) - _GO_ON_BITS)
        return made


def _make_time(raw: bytes) -> float | None:
    if not raw:
        return None
    time = _Time(raw)
    return float(time.seconds * _MICROSECONDS + time.nanos // 1000) / _MICROSECONDS


# containers


def read_containers(messages: Sequence[Any]) -> tuple[tuple[Container, ...], bool]:
    """The containers of a spec, and whether one of them requests shared GPUs."""
    if len(messages) == 1:
        [each] = messages
        return _alone[(each.name, each.image, each.resources, each.restartPolicy)]
    found = [
        _alone[(each.name, each.image, each.resources, each.restartPolicy)] for each in messages
    ]
    return tuple([containers[0] for containers, _ in found]), any(shares for _, shares in found)


def _make_alone(key: tuple[str, str, bytes, str]) -> tuple[tuple[Container], bool]:
    name, image, raw, restarts = key
    containers = (Container(name, image, *resources[raw], restarts == "Always"),)
    return containers, name_shared_gpus(containers)


class StateFields(NamedTuple):
    """The state of a container, with the fields of `ContainerStatus`."""

    state: ContainerState = ContainerState.WAITING
    reason: str = ""
    message: str = ""
    exit_code: int | None = None
    signal: int | None = None
    started_at: float | None = None
    finished_at: float | None = None


UNREPORTED: Final = StateFields(ContainerState.UNREPORTED)


def _make_state(raw: bytes) -> StateFields:
    state = _State(raw)
    if state.HasField("running"):
        return StateFields(ContainerState.RUNNING, started_at=times[state.running.startedAt])
    if not state.HasField("terminated"):
        return StateFields(ContainerState.WAITING, state.waiting.reason, state.waiting.message)
    end = state.terminated
    return StateFields(
        ContainerState.TERMINATED,
        end.reason,
        end.message,
        end.exitCode,
        end.signal or None,
        # the kubelet writes 1970 for a container that could not be started
        times[end.startedAt] or None,
        times[end.finishedAt],
    )


def _make_resources(raw: bytes) -> tuple[Amounts, Amounts]:
    requirements = parse_message("core.ResourceRequirements", raw)
    return asked_and_limits(requirements.get("requests"), requirements.get("limits"))


def _make_amounts(raws: tuple[bytes, ...]) -> Amounts:
    return parse_amounts(dict(map(parse_quantity_entry, raws)))


# conditions, taints, choices


def read_pod_conditions(raws: Sequence[bytes]) -> tuple[Condition, ...]:
    """The conditions that carry information (`is_informative`)."""
    sound = _SOUND(b"".join(raws))
    if sound is not None:
        return _bound[sound[1] or sound[2]]
    return tuple([kept for raw in raws if (kept := _conditions[raw]) is not None])


def _condition(message: Any) -> Condition:
    return Condition(
        message.type,
        message.status or "Unknown",
        message.reason,
        message.message,
        times[message.lastTransitionTime],
    )


def _make_pod_condition(raw: bytes) -> Condition | None:
    condition = _PodCondition(raw)
    return _condition(condition) if is_informative(condition) else None


def _make_taint(raw: bytes) -> Taint:
    taint = parse_message("core.Taint", raw)
    return Taint(taint.get("key", ""), taint.get("value", ""), taint.get("effect", ""))


def _make_choice(parts: tuple[tuple[bytes, ...], bytes, tuple[bytes, ...]]) -> NodeChoice:
    selector, affinity, tolerations = parts
    return parse_node_choice(
        _json(dict(map(parse_text_entry, selector))),
        _json(parse_message("core.Affinity", affinity) if affinity else None),
        _json([parse_message("core.Toleration", raw) for raw in tolerations]),
    )


def _json(value: Any) -> Raw:
    return Raw(msgspec.json.encode(value)) if value else Raw()


times: Final = _Times(_make_time)
states: Final = Memo(_make_state)
_bound: Final = Memo[bytes, tuple[Condition]](
    lambda raw: (Condition("PodScheduled", "True", "", "", times[raw]),)
)
_conditions: Final = Memo(_make_pod_condition)
node_conditions: Final = Memo[bytes, Condition](lambda raw: _condition(_NodeCondition(raw)))
_label_pairs: Final = Memo(_make_label)
_kept_sets: Final = Memo(_make_kept)
labels: Final = Memo[tuple[bytes, ...], Mapping[str, str]](
    lambda raws: dict(map(_label_pairs.__getitem__, raws))
)
owners: Final = Memo[tuple[bytes, ...], tuple[Owner, ...]](
    lambda raws: tuple(map(_make_owner, raws))
)
amounts: Final = Memo(_make_amounts)
resources: Final = Memo(_make_resources)
_alone: Final = Memo(_make_alone)
taints: Final = Memo(_make_taint)
choices: Final = Memo(_make_choice)
amounts[()] = NOTHING
resources[b""] = NOTHING, NOTHING
