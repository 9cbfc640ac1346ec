"""Kubernetes objects in JSON: decodes the fields that Fairlead reads and turns them into the model.

There are two steps: msgspec decodes bytes into `Wire…` structs (every field optional and nullable,
because Go sends null slices and old servers omit fields), then `parse_…` makes lean rows. Rows
share equal label sets and resource lists through bounded caches keyed by raw bytes, so that 100,000
pods of a few hundred jobs take little more memory than their names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from sys import intern
from typing import Any, Final, Generic, TypeVar

import msgspec
from msgspec import Raw, Struct

from fairlead.model.devices.gpu import CardMode, GpuSlot, Health
from fairlead.model.event import Event
from fairlead.model.node import Condition, Node, Taint
from fairlead.model.node_choice import ANY_NODE
from fairlead.model.pod import Container, ContainerState, ContainerStatus, Owner, Pod, PodPhase
from fairlead.model.resources import NOTHING, Amounts, largest_of
from fairlead.model.sharing import name_shared_gpus
from fairlead.wire import names
from fairlead.wire.gpus.allocation import parse_card_memory, parse_grants, parse_memory_limits
from fairlead.wire.kube.forms import JsonForm
from fairlead.wire.kube.node_choice import parse_node_choice
from fairlead.wire.kube.quantity import parse_amounts

Row = TypeVar("Row")

_CACHE_LIMIT: Final = 8_192
_owners_cache: dict[tuple[str, str, str, bool, str], tuple[Owner]] = {}
_labels_cache: dict[bytes, Mapping[str, str]] = {}
_amounts_cache: dict[bytes, tuple[Amounts, Amounts]] = {}
_containers_cache: dict[tuple[str, str, bytes, bool], tuple[Container]] = {}
_annotations_cache: dict[tuple[tuple[str, str], ...], Mapping[str, str]] = {}
_NO_LABELS: Final[Mapping[str, str]] = {}
_NO_MEMORY_LIMITS: Final[Mapping[str, int]] = {}
_EMPTY_RAW: Final = (b"", b"{}", b"null")
Texts = Mapping[str, str | int | float]
"""Amounts in the spelling of the API."""
_SHORTEST_PAIR: Final = len('{"":""}')  # what is shorter holds no label: nothing, `{}`, `null`


class WireOwner(Struct, gc=False, rename="camel"):
    kind: str | None = None
    name: str | None = None
    uid: str | None = None
    controller: bool | None = None
    api_version: str | None = None


class WireMeta(Struct, gc=False, rename="camel"):
    name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    labels: Raw = Raw()
    annotations: dict[str, str | None] | None = None
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    owner_references: list[WireOwner] | None = None


class WireNamed(Struct):
    """Any object, of which only metadata are read."""

    metadata: WireMeta


class WireResources(Struct, gc=False):
    requests: dict[str, str | int | float] | None = None
    limits: dict[str, str | int | float] | None = None


class WireContainer(Struct, gc=False, rename="camel"):
    name: str | None = None
    image: str | None = None
    resources: Raw = Raw()
    restart_policy: str | None = None


class WireGate(Struct, gc=False):
    name: str | None = None


class WireClaimSource(Struct, gc=False, rename="camel"):
    claim_name: str | None = None


class WireVolume(Struct, gc=False, rename="camel"):
    persistent_volume_claim: WireClaimSource | None = None


class WirePodSpec(Struct, gc=False, rename="camel"):
    node_name: str | None = None
    containers: list[WireContainer] | None = None
    init_containers: list[WireContainer] | None = None
    overhead: dict[str, str | int | float] | None = None
    priority: int | None = None
    priority_class_name: str | None = None
    preemption_policy: str | None = None
    scheduler_name: str | None = None
    scheduling_gates: list[WireGate] | None = None
    node_selector: Raw = Raw()
    affinity: Raw = Raw()
    tolerations: Raw = Raw()
    resources: Raw = Raw()
    termination_grace_period_seconds: int | None = None
    volumes: list[WireVolume] | None = None


class WireWaiting(Struct, gc=False):
    reason: str | None = None
    message: str | None = None


class WireRunning(Struct, gc=False, rename="camel"):
    started_at: datetime | None = None


class WireTerminated(Struct, gc=False, rename="camel"):
    reason: str | None = None
    message: str | None = None
    exit_code: int | None = None
    signal: int | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None


class WireState(Struct, gc=False):
    waiting: WireWaiting | None = None
    running: WireRunning | None = None
    terminated: WireTerminated | None = None


class WireContainerStatus(Struct, gc=False, rename="camel"):
    name: str | None = None
    ready: bool | None = None
    started: bool | None = None
    restart_count: int | None = None
    state: WireState | None = None
    last_state: WireState | None = None
    allocated_resources: Raw = Raw()


class WireCondition(Struct, gc=False, rename="camel"):
    type: str | None = None
    status: str | None = None
    reason: str | None = None
    message: str | None = None
    last_transition_time: datetime | None = None


class WirePodStatus(Struct, gc=False, rename="camel"):
    phase: str | None = None
    reason: str | None = None
    message: str | None = None
    host_ip: str | None = msgspec.field(name="hostIP", default=None)
    pod_ip: str | None = msgspec.field(name="podIP", default=None)
    start_time: datetime | None = None
    container_statuses: list[WireContainerStatus] | None = None
    init_container_statuses: list[WireContainerStatus] | None = None
    conditions: Raw = Raw()
    nominated_node_name: str | None = None


class WirePod(Struct, gc=False):
    metadata: WireMeta
    spec: WirePodSpec | None = None
    status: WirePodStatus | None = None


class WireAddress(Struct, gc=False):
    type: str | None = None
    address: str | None = None


class WireTaint(Struct, gc=False):
    key: str | None = None
    value: str | None = None
    effect: str | None = None


class WireNodeInfo(Struct, gc=False, rename="camel"):
    kubelet_version: str | None = None
    container_runtime_version: str | None = None
    os_image: str | None = None


class WireNodeSpec(Struct, gc=False):
    unschedulable: bool | None = None
    taints: list[WireTaint] | None = None


class WireNodeStatus(Struct, gc=False, rename="camel"):
    capacity: dict[str, str | int | float] | None = None
    allocatable: dict[str, str | int | float] | None = None
    addresses: list[WireAddress] | None = None
    conditions: list[WireCondition] | None = None
    node_info: WireNodeInfo | None = None


class WireNode(Struct, gc=False):
    metadata: WireMeta
    spec: WireNodeSpec | None = None
    status: WireNodeStatus | None = None


class WireObjectReference(Struct, gc=False):
    kind: str | None = None
    namespace: str | None = None
    name: str | None = None
    uid: str | None = None


class WireEventSeries(Struct, gc=False, rename="camel"):
    count: int | None = None
    last_observed_time: datetime | None = None


class WireEvent(Struct, gc=False, rename="camel"):
    metadata: WireMeta
    involved_object: WireObjectReference | None = None
    type: str | None = None
    reason: str | None = None
    message: str | None = None
    count: int | None = None
    event_time: datetime | None = None
    first_timestamp: datetime | None = None
    last_timestamp: datetime | None = None
    series: WireEventSeries | None = None


_HEALTH: Final = {health.value: health for health in Health}
_CARD_MODES: Final = {mode.value: mode for mode in CardMode}
_PHASES: Final = {phase.value: phase for phase in PodPhase}
_UNKNOWN_PHASE: Final = PodPhase.UNKNOWN
_RUNNING: Final = ContainerState.RUNNING
_TERMINATED: Final = ContainerState.TERMINATED
_WAITING: Final = ContainerState.WAITING
_UNHEALTHY: Final = Health.UNHEALTHY
_EXCLUSIVE: Final = CardMode.EXCLUSIVE
_labels_decoder: Final = msgspec.json.Decoder(dict[str, str | None])
_BOUND: Final = "PodScheduled"
_conditions_decoder: Final = msgspec.json.Decoder(list[WireCondition] | None)
_resources_decoder: Final = msgspec.json.Decoder(WireResources)
_slots_decoder: Final = msgspec.json.Decoder(list[Raw])


class WireSlot(Struct, gc=False, rename="camel"):
    index: int = 0
    minor: int = -1
    uuid: str = ""
    model: str = ""
    memory_mib: int | None = msgspec.field(name="memoryMiB", default=None)
    units: int = 0
    health: str = "Healthy"
    reason: str = ""
    mode: str = "shared"


def epoch(moment: datetime | None) -> float | None:
    """Epoch seconds of an API timestamp; None stays None."""
    return None if moment is None else moment.timestamp()


def parse_pod(wire: WirePod) -> Pod:
    """A pod row; raises ValueError (quantity named) for amounts the API would refuse."""
    meta, spec, status = wire.metadata, wire.spec or WirePodSpec(), wire.status or WirePodStatus()
    annotations = kept_annotations(meta.annotations)
    containers = _resized(parse_containers(spec.containers), status.container_statuses)
    init_containers = _resized(
        parse_containers(spec.init_containers), status.init_container_statuses
    )
    shares_gpus = name_shared_gpus(containers) or name_shared_gpus(init_containers)
    return Pod(
        namespace=intern(meta.namespace or ""),
        name=meta.name or "",
        uid=meta.uid or "",
        labels=parse_labels(meta.labels),
        annotations=annotations,
        owners=parse_owners(meta.owner_references),
        node=intern(spec.node_name or ""),
        phase=_PHASES.get(status.phase or "Pending", _UNKNOWN_PHASE),
        reason=status.reason or "",
        message=status.message or "",
        pod_ip=status.pod_ip or "",
        host_ip=intern(status.host_ip or ""),
        priority=spec.priority or 0,
        priority_class=intern(spec.priority_class_name or ""),
        scheduler=intern(spec.scheduler_name or ""),
        gates=tuple(gate.name or "" for gate in spec.scheduling_gates)
        if spec.scheduling_gates
        else (),
        containers=containers,
        init_containers=init_containers,
        overhead=parse_amounts(spec.overhead),
        statuses=_parse_statuses(status.container_statuses),
        init_statuses=_parse_statuses(status.init_container_statuses),
        conditions=parse_pod_conditions(status.conditions),
        created_at=epoch(meta.creation_timestamp),
        started_at=epoch(status.start_time),
        deleted_at=epoch(meta.deletion_timestamp),
        nominated_node=status.nominated_node_name or "",
        grants=parse_grants(annotations, containers),
        memory_limits_mib=parse_memory_limits(annotations) if annotations else _NO_MEMORY_LIMITS,
        node_choice=(
            parse_node_choice(spec.node_selector, spec.affinity, spec.tolerations)
            if shares_gpus or not spec.node_name
            else ANY_NODE
        ),
        whole=_parse_resources(bytes(spec.resources))[0],
        grace_seconds=spec.termination_grace_period_seconds,
        never_preempts=spec.preemption_policy == "Never",
        claims=parse_claims(spec.volumes) if spec.volumes else (),
    )


def parse_claims(volumes: Sequence[WireVolume]) -> tuple[str, ...]:
    """Names of the claims among the volumes of a pod."""
    claims = [each.persistent_volume_claim for each in volumes]
    return tuple(each.claim_name for each in claims if each is not None and each.claim_name)


def parse_node(wire: WireNode) -> Node:
    """A node row; raises ValueError (quantity named) for amounts the API would refuse."""
    meta, spec, status = wire.metadata, wire.spec or WireNodeSpec(), wire.status or WireNodeStatus()
    info = status.node_info or WireNodeInfo()
    annotations, labels = kept_annotations(meta.annotations), parse_labels(meta.labels)
    return Node(
        name=meta.name or "",
        uid=meta.uid or "",
        labels=labels,
        annotations=annotations,
        capacity=parse_amounts(status.capacity),
        allocatable=parse_amounts(status.allocatable),
        addresses=tuple((item.type or "", item.address or "") for item in status.addresses or ()),
        conditions=parse_conditions(status.conditions),
        taints=tuple(
            Taint(taint.key or "", taint.value or "", taint.effect or "")
            for taint in spec.taints or ()
        ),
        unschedulable=bool(spec.unschedulable),
        created_at=epoch(meta.creation_timestamp),
        kubelet_version=info.kubelet_version or "",
        runtime_version=info.container_runtime_version or "",
        os_image=info.os_image or "",
        gpus=parse_gpu_slots(annotations.get(names.ANNOTATION_GPUS, "")),
        card_memory_mib=parse_card_memory(labels),
    )


def parse_event(wire: WireEvent) -> Event:
    """An event row; `at` is the newest of the event's times."""
    meta, about, series = (
        wire.metadata,
        wire.involved_object or WireObjectReference(),
        wire.series or WireEventSeries(),
    )
    newest = (
        series.last_observed_time
        or wire.last_timestamp
        or wire.event_time
        or wire.first_timestamp
        or meta.creation_timestamp
    )
    return Event(
        namespace=meta.namespace or "",
        name=meta.name or "",
        uid=meta.uid or "",
        type=wire.type or "Normal",
        reason=wire.reason or "",
        message=wire.message or "",
        object_kind=about.kind or "",
        object_namespace=about.namespace or "",
        object_name=about.name or "",
        object_uid=about.uid or "",
        count=series.count or wire.count or 1,
        at=epoch(newest),
        version=int(meta.resource_version)
        if meta.resource_version and meta.resource_version.isdecimal()
        else 0,
    )


def parse_labels(raw: Raw) -> Mapping[str, str]:
    """A label set; one shared value for all objects with the same bytes."""
    key = bytes(raw)
    if len(key) < _SHORTEST_PAIR:
        return _NO_LABELS
    found = _labels_cache.get(key)
    if found is None:
        if len(_labels_cache) >= _CACHE_LIMIT:
            _labels_cache.clear()
        found = _labels_cache[key] = {
            intern(name): intern(value or "") for name, value in _labels_decoder.decode(key).items()
        }
    return found


def kept_annotations(annotations: Mapping[str, str | None] | None) -> Mapping[str, str]:
    """The annotations that Fairlead reads (`names.KEPT_ANNOTATION_PREFIXES`).

    Equal sets are one shared value.
    """
    if not annotations:
        return _NO_LABELS
    kept = tuple(
        [
            (key, value or "")
            for key, value in annotations.items()
            if key.startswith(names.KEPT_ANNOTATION_PREFIXES)
        ]
    )
    if not kept:
        return _NO_LABELS
    found = _annotations_cache.get(kept)
    if found is None:
        if len(_annotations_cache) >= _CACHE_LIMIT:
            _annotations_cache.clear()
        found = _annotations_cache[kept] = dict(kept)
    return found


def parse_owners(wires: list[WireOwner] | None) -> tuple[Owner, ...]:
    """The owners; equal owners are one shared value.

    The tuple of a single owner, which nearly every pod has, is shared as well.
    """
    if not wires:
        return ()
    if len(wires) == 1:
        return _parse_owner(wires[0])
    return tuple(_parse_owner(wire)[0] for wire in wires)


def _parse_owner(wire: WireOwner) -> tuple[Owner]:
    key = (
        wire.kind or "",
        wire.name or "",
        wire.uid or "",
        bool(wire.controller),
        wire.api_version or "",
    )
    found = _owners_cache.get(key)
    if found is None:
        if len(_owners_cache) >= _CACHE_LIMIT:
            _owners_cache.clear()
        found = _owners_cache[key] = (Owner(*key),)
    return found


def parse_containers(wires: list[WireContainer] | None) -> tuple[Container, ...]:
    """The containers of a spec; equal ones (name, image, resources) are one shared value.

    The tuple of a single container is shared as well.
    """
    if not wires:
        return ()
    if len(wires) == 1:
        return _parse_container(wires[0])
    return tuple(_parse_container(wire)[0] for wire in wires)


def _parse_container(wire: WireContainer) -> tuple[Container]:
    key = (
        wire.name or "",
        wire.image or "",
        bytes(wire.resources),
        wire.restart_policy == "Always",
    )
    found = _containers_cache.get(key)
    if found is None:
        if len(_containers_cache) >= _CACHE_LIMIT:
            _containers_cache.clear()
        requests, limits = _parse_resources(key[2])
        found = _containers_cache[key] = (Container(key[0], key[1], requests, limits, key[3]),)
    return found


def _resized(
    containers: tuple[Container, ...], statuses: list[WireContainerStatus] | None
) -> tuple[Container, ...]:
    for wire in statuses or ():
        if given := _parse_given(bytes(wire.allocated_resources)):
            containers = resized(containers, wire.name, given)
    return containers


def resized(
    containers: tuple[Container, ...], name: str | None, given: Amounts
) -> tuple[Container, ...]:
    """The containers during a resize: each requests the larger
    of its request and its allocation.
    """
    for place, container in enumerate(containers):
        asked = container.requests
        if container.name == name and any(
            amount > asked.get(resource, 0) for resource, amount in given.items()
        ):
            grown = msgspec.structs.replace(container, requests=largest_of((asked, given)))
            return (*containers[:place], grown, *containers[place + 1 :])
    return containers


def _parse_given(raw: bytes) -> Amounts:
    return NOTHING if raw in _EMPTY_RAW else _parse_resources(b'{"requests":%b}' % raw)[0]


def _parse_resources(raw: bytes) -> tuple[Amounts, Amounts]:
    if raw in _EMPTY_RAW:
        return NOTHING, NOTHING
    found = _amounts_cache.get(raw)
    if found is None:
        if len(_amounts_cache) >= _CACHE_LIMIT:
            _amounts_cache.clear()
        wire = _resources_decoder.decode(raw)
        found = _amounts_cache[raw] = asked_and_limits(wire.requests, wire.limits)
    return found


def asked_and_limits(requests: Texts | None, limits: Texts | None) -> tuple[Amounts, Amounts]:
    """The requests, which default to the limits, and the limits."""
    parsed = parse_amounts(limits)
    return {**parsed, **parse_amounts(requests)}, parsed


def _parse_statuses(wires: list[WireContainerStatus] | None) -> tuple[ContainerStatus, ...]:
    if not wires:
        return ()
    if len(wires) == 1:
        return (_parse_status(wires[0]),)
    return tuple(_parse_status(wire) for wire in wires)


def _parse_status(wire: WireContainerStatus) -> ContainerStatus:
    last = wire.last_state.terminated if wire.last_state else None
    last_finished = epoch(last.finished_at) if last else None
    common = (intern(wire.name or ""), bool(wire.ready), wire.restart_count or 0)
    state = wire.state
    if state is None:
        return ContainerStatus(*common, last_finished_at=last_finished)
    if state.running is not None:
        return ContainerStatus(
            *common,
            _RUNNING,
            started=bool(wire.started),
            started_at=epoch(state.running.started_at),
            last_finished_at=last_finished,
        )
    if state.terminated is not None:
        end = state.terminated
        return ContainerStatus(
            *common,
            _TERMINATED,
            end.reason or "",
            end.message or "",
            end.exit_code,
            end.signal,
            # the kubelet writes 1970 for a container that could not be started
            started_at=epoch(end.started_at) or None,
            finished_at=epoch(end.finished_at),
            last_finished_at=last_finished,
        )
    waiting = state.waiting or WireWaiting()
    return ContainerStatus(
        *common,
        _WAITING,
        waiting.reason or "",
        waiting.message or "",
        last_finished_at=last_finished,
    )


def parse_conditions(wires: list[WireCondition] | None) -> tuple[Condition, ...]:
    """The conditions of an object; an absent status is Unknown."""
    if not wires:
        return ()
    return tuple(
        Condition(
            wire.type or "",
            wire.status or "Unknown",
            wire.reason or "",
            wire.message or "",
            epoch(wire.last_transition_time),
        )
        for wire in wires
    )


def parse_pod_conditions(raw: Raw) -> tuple[Condition, ...]:
    """The conditions of a pod, without those that are True and carry no further information: a
    healthy pod keeps only `PodScheduled`, for its time.
    """
    wires = _conditions_decoder.decode(raw) or [] if bytes(raw) else []
    return parse_conditions([wire for wire in wires if is_informative(wire)])


def is_informative(condition: Any) -> bool:
    """Whether a pod's condition is kept: not True, with reason or message, or PodScheduled."""
    return bool(
        condition.status != "True"
        or condition.reason
        or condition.message
        or condition.type == _BOUND
    )


def parse_gpu_slots(text: str) -> tuple[GpuSlot, ...]:
    """The GPUs in the inventory annotation of a node, by index.

    Malformed entries are left out, so that the node stays usable with the others.
    """
    if not text:
        return ()
    try:
        entries = _slots_decoder.decode(text)
    except msgspec.MsgspecError:
        return ()
    slots = (_parse_slot(entry) for entry in entries)
    return tuple(sorted((slot for slot in slots if slot is not None), key=lambda slot: slot.index))


def _parse_slot(raw: Raw) -> GpuSlot | None:
    try:
        wire = msgspec.json.decode(raw, type=WireSlot)
    except msgspec.MsgspecError:
        return None
    return GpuSlot(
        wire.index,
        wire.uuid,
        wire.minor,
        wire.model,
        wire.memory_mib,
        wire.units,
        _HEALTH.get(wire.health, _UNHEALTHY),
        wire.reason,
        _CARD_MODES.get(wire.mode, _EXCLUSIVE),
    )


JSON_FORMS: Final[Mapping[str, JsonForm[Any]]] = {
    "Pod": JsonForm(WirePod, parse_pod),
    "Node": JsonForm(WireNode, parse_node),
    "Event": JsonForm(WireEvent, parse_event),
}


class JsonAndProtobufForm(Struct, Generic[Row], frozen=True):
    """Objects of a kind with two parsers that make equal rows.

    One of JSON, one of protobuf (`message_rows`).

    Both belong to the kind. A caller that wants less of a row passes `keep` to the reader.
    """

    kind: str

    @property
    def json(self) -> JsonForm[Row]:
        return JSON_FORMS[self.kind]


POD_FORM: Final[JsonAndProtobufForm[Pod]] = JsonAndProtobufForm("Pod")
NODE_FORM: Final[JsonAndProtobufForm[Node]] = JsonAndProtobufForm("Node")
EVENT_FORM: Final[JsonAndProtobufForm[Event]] = JsonAndProtobufForm("Event")
