"""Pods, nodes and events as protobuf messages (`messages`), turned into the rows that JSON gives (`objects`).

Each attribute of a message is made anew when it is asked for, so nothing is asked twice, and parts that are
alike in many objects are looked up by their bytes. An API server's two answers give the same rows: that is
held by a test against a real one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Mapping
from sys import intern
from typing import Any, Final, NamedTuple, TypeVar

import msgspec
from msgspec import Raw

from fairlead.model.event import Event
from fairlead.model.node import Condition, Node, Taint
from fairlead.model.node_choice import ANYWHERE, NodeChoice
from fairlead.model.pod import Container, ContainerState, ContainerStatus, GrantsByContainer, Owner, Pod, PodPhase
from fairlead.model.resources import NOTHING, Amounts
from fairlead.model.sharing import name_shared_gpus
from fairlead.wire import names
from fairlead.wire.gpus.allocation import parse_card_memory, parse_grants, parse_memory_limits
from fairlead.wire.kube.forms import UnreadableProtobuf
from fairlead.wire.kube.messages import DecodeError, message_classes
from fairlead.wire.kube.node_choice import parse_node_choice
from fairlead.wire.kube.objects import asked_and_limits, kept_annotations, parse_gpu_slots, resized, says_something
from fairlead.wire.kube.protobuf import parse_message, parse_quantity_entry, parse_text_entry
from fairlead.wire.kube.quantity import parse_amounts

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

_KEPT_AT_MOST: Final = 8_192
_PREFIXES: Final = tuple(each.encode() for each in names.KEPT_ANNOTATION_PREFIXES)
_KEPT_ANNOTATION: Final = re.compile(
    rb"\n.{1,2}(?:%b)" % b"|".join(re.escape(each.encode()) for each in names.KEPT_ANNOTATION_PREFIXES), re.S
)
"""How an entry begins: with its key, whose length takes a byte or two."""
_SILENT: Final = re.compile(
    rb"\n(?:\x05Ready|\x0bInitialized|\x0fContainersReady|\x19PodReadyToStartContainers)\x12\x04True\x1a\0"
    rb"\x22\x08\x08.{5}\x10\0\x2a\0\x32\0(?:\x38[\x80-\xff]*[\0-\x7f])?",
    re.S,
)
"""A whole condition as kubelets write them of sound pods: True at some time, without a reason or a message.
Four of the five that a pod has are so, each with a time of its own, and say nothing that is kept.
"""
_PHASES: Final = {phase.value: phase for phase in PodPhase} | {"": PodPhase.PENDING}
_UNKNOWN_PHASE: Final = PodPhase.UNKNOWN
_NO_TEXTS: Final[Mapping[str, str]] = {}
_NO_LIMITS: Final[Mapping[str, int]] = {}
_NO_GRANTS: Final[GrantsByContainer] = {}
_MICROSECONDS: Final = 10**6

_class = message_classes()
_Time, _State = _class["Time"].FromString, _class["ContainerState"].FromString
_PodCondition, _NodeCondition = _class["PodCondition"].FromString, _class["NodeCondition"].FromString


class _Looked(dict[Key, Value]):
    """What was made of a key before, or is made now; so many at most.

    Raises ValueError for a key that makes none.
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


def parse_pod(pod: Any) -> Pod:
    """A pod row; raises ValueError (quantity named) for amounts the API would refuse."""
    meta, spec, status, is_silent = pod.metadata, pod.spec, pod.status, _SILENT.fullmatch
    raw_annotations, raw_owners, raw_gates = meta.annotations, meta.ownerReferences, spec.schedulingGates
    annotations = _annotations(raw_annotations[:]) if raw_annotations else _NO_TEXTS
    told, told_inits = status.containerStatuses[:], status.initContainerStatuses[:]
    containers = _given(_containers(spec.containers[:]), told)
    init_containers = _given(_containers(spec.initContainers[:]), told_inits) if told_inits else _containers(spec.initContainers[:])
    node = spec.nodeName
    shares_gpus = name_shared_gpus(containers) or name_shared_gpus(init_containers)
    return Pod(
        namespace=intern(meta.namespace),
        name=meta.name,
        uid=meta.uid,
        labels=_labels[tuple(meta.labels[:])],
        annotations=annotations,
        owners=_owners[tuple(raw_owners[:])] if raw_owners else (),
        node=intern(node),
        phase=_PHASES.get(status.phase, _UNKNOWN_PHASE),
        reason=status.reason,
        message=status.message,
        pod_ip=status.podIP,
        host_ip=intern(status.hostIP),
        priority=spec.priority,
        priority_class=intern(spec.priorityClassName),
        scheduler=intern(spec.schedulerName),
        gates=tuple(parse_message("core.PodSchedulingGate", gate).get("name", "") for gate in raw_gates) if raw_gates else (),
        containers=containers,
        init_containers=init_containers,
        overhead=_amounts[tuple(spec.overhead[:])],
        statuses=tuple([_status(each) for each in told]),
        init_statuses=tuple([_status(each) for each in told_inits]),
        conditions=tuple([kept for raw in status.conditions[:] if not is_silent(raw) and (kept := _conditions[raw]) is not None]),
        created_at=_times[meta.creationTimestamp],
        started_at=_times[status.startTime],
        deleted_at=_times[meta.deletionTimestamp],
        nominated_node=status.nominatedNodeName,
        grants=parse_grants(annotations, containers) if annotations else _NO_GRANTS,
        memory_limits_mib=parse_memory_limits(annotations) if annotations else _NO_LIMITS,
        node_choice=_choice(spec) if shares_gpus or not node else ANYWHERE,
        whole=_resources[spec.resources][0],
        grace_seconds=spec.terminationGracePeriodSeconds if spec.HasField("terminationGracePeriodSeconds") else None,
    )


def parse_node(node: Any) -> Node:
    """A node row; raises ValueError (quantity named) for amounts the API would refuse."""
    meta, spec, status = node.metadata, node.spec, node.status
    told = status.nodeInfo
    annotations, labels = _annotations(meta.annotations[:]), _labels[tuple(meta.labels[:])]
    addresses = (parse_message("core.NodeAddress", raw) for raw in status.addresses)
    return Node(
        name=meta.name,
        uid=meta.uid,
        labels=labels,
        annotations=annotations,
        capacity=_amounts[tuple(status.capacity)],
        allocatable=_amounts[tuple(status.allocatable)],
        addresses=tuple((each.get("type", ""), each.get("address", "")) for each in addresses),
        conditions=tuple([_node_conditions[raw] for raw in status.conditions[:]]),
        taints=tuple([_taints[raw] for raw in spec.taints[:]]),
        unschedulable=spec.unschedulable,
        created_at=_times[meta.creationTimestamp],
        kubelet_version=told.kubeletVersion,
        runtime_version=told.containerRuntimeVersion,
        os_image=told.osImage,
        gpus=parse_gpu_slots(annotations.get(names.ANNOTATION_GPUS, "")),
        card_memory_mib=parse_card_memory(labels),
    )


def parse_event(event: Any) -> Event:
    """An event row; `at` is the newest time the event carries."""
    meta, about, series = event.metadata, event.involvedObject, event.series
    times = (series.lastObservedTime, event.lastTimestamp, event.eventTime, event.firstTimestamp, meta.creationTimestamp)
    version = meta.resourceVersion
    return Event(
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        type=event.type or "Normal",
        reason=event.reason,
        message=event.message,
        object_kind=about.kind,
        object_namespace=about.namespace,
        object_name=about.name,
        object_uid=about.uid,
        count=series.count or event.count or 1,
        at=_times[next(filter(None, times), b"")],
        version=int(version) if version.isdecimal() else 0,
    )


def _containers(told: Iterable[Any]) -> tuple[Container, ...]:
    return tuple([_container[(each.name, each.image, each.resources, each.restartPolicy)] for each in told])


def _make_container(key: tuple[str, str, bytes, str]) -> Container:
    name, image, resources, restarts = key
    return Container(name, image, *_resources[resources], restarts == "Always")


def _given(containers: tuple[Container, ...], told: Iterable[Any]) -> tuple[Container, ...]:
    for each in told:
        if raw := tuple(each.allocatedResources[:]):
            containers = resized(containers, each.name, _amounts[raw])
    return containers


class _Told(NamedTuple):
    """What a container's state says, as `ContainerStatus` has it."""

    state: ContainerState = ContainerState.WAITING
    reason: str = ""
    message: str = ""
    exit_code: int | None = None
    signal: int | None = None
    started_at: float | None = None
    finished_at: float | None = None


_UNTOLD: Final = _Told(ContainerState.UNTOLD)


def _make_state(raw: bytes) -> _Told:
    state = _State(raw)
    if state.HasField("running"):
        return _Told(ContainerState.RUNNING, started_at=_times[state.running.startedAt])
    if not state.HasField("terminated"):
        return _Told(ContainerState.WAITING, state.waiting.reason, state.waiting.message)
    end = state.terminated
    return _Told(
        ContainerState.TERMINATED,
        end.reason,
        end.message,
        end.exitCode,
        end.signal or None,
        _times[end.startedAt] or None,  # of a container that could not be started, the kubelet says 1970
        _times[end.finishedAt],
    )


def _status(told: Any) -> ContainerStatus:
    raw, last = told.state, told.lastState
    state = _states[raw] if raw or told.HasField("state") else _UNTOLD
    return ContainerStatus(
        intern(told.name),
        told.ready,
        told.restartCount,
        *state[:5],
        state.state is ContainerState.RUNNING and told.started,
        state.started_at,
        state.finished_at,
        _states[last].finished_at if last else None,
    )


def _make_time(raw: bytes) -> float | None:
    """Epoch seconds; a time of no bytes is none, which JSON spells null."""
    if not raw:
        return None
    time = _Time(raw)
    return float(time.seconds * _MICROSECONDS + time.nanos // 1000) / _MICROSECONDS


def _condition(told: Any) -> Condition:
    return Condition(told.type, told.status or "Unknown", told.reason, told.message, _times[told.lastTransitionTime])


def _make_condition(raw: bytes) -> Condition | None:
    told = _PodCondition(raw)
    return _condition(told) if says_something(told) else None


def _annotations(raws: Iterable[bytes]) -> Mapping[str, str]:
    """Those that Fairlead reads."""
    is_kept = _KEPT_ANNOTATION.match
    kept = [raw for raw in raws if is_kept(raw)]
    return _kept_sets[tuple(kept)] if kept else _NO_TEXTS


def _make_label(raw: bytes) -> tuple[str, str]:
    name, value = parse_text_entry(raw)
    return intern(name), intern(value)


def _make_owners(raws: tuple[bytes, ...]) -> tuple[Owner, ...]:
    told = (parse_message("meta.OwnerReference", raw) for raw in raws)
    return tuple(
        Owner(each.get("kind", ""), each.get("name", ""), each.get("uid", ""), each.get("controller", False), each.get("apiVersion", ""))
        for each in told
    )


def _make_resources(raw: bytes) -> tuple[Amounts, Amounts]:
    told = parse_message("core.ResourceRequirements", raw)
    return asked_and_limits(told.get("requests"), told.get("limits"))


def _make_amounts(raws: tuple[bytes, ...]) -> Amounts:
    return parse_amounts(dict(map(parse_quantity_entry, raws)))


def _make_taint(raw: bytes) -> Taint:
    told = parse_message("core.Taint", raw)
    return Taint(told.get("key", ""), told.get("value", ""), told.get("effect", ""))


def _choice(spec: Any) -> NodeChoice:
    """As JSON says it: only pods that wait or share GPUs are asked."""
    return _choices[(tuple(spec.nodeSelector), spec.affinity, tuple(spec.tolerations))]


def _make_choice(parts: tuple[tuple[bytes, ...], bytes, tuple[bytes, ...]]) -> NodeChoice:
    selector, affinity, tolerations = parts
    return parse_node_choice(
        _json(dict(map(parse_text_entry, selector))),
        _json(parse_message("core.Affinity", affinity) if affinity else None),
        _json([parse_message("core.Toleration", raw) for raw in tolerations]),
    )


def _json(value: Any) -> Raw:
    return Raw(msgspec.json.encode(value)) if value else Raw()


_times: Final = _Looked(_make_time)
_states: Final = _Looked(_make_state)
_conditions: Final = _Looked(_make_condition)
_node_conditions: Final = _Looked[bytes, Condition](lambda raw: _condition(_NodeCondition(raw)))
_label_pairs: Final = _Looked(_make_label)
_kept_sets: Final = _Looked[tuple[bytes, ...], Mapping[str, str]](lambda raws: kept_annotations(dict(map(parse_text_entry, raws))))
_labels: Final = _Looked[tuple[bytes, ...], Mapping[str, str]](lambda raws: dict(map(_label_pairs.__getitem__, raws)))
_owners: Final = _Looked(_make_owners)
_amounts: Final = _Looked(_make_amounts)
_resources: Final = _Looked(_make_resources)
_container: Final = _Looked(_make_container)
_taints: Final = _Looked(_make_taint)
_choices: Final = _Looked(_make_choice)
_amounts[()] = NOTHING
_resources[b""] = NOTHING, NOTHING
