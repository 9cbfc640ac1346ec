"""Turns pods, nodes and events in protobuf (`messages`) into the rows of their JSON (`objects`).

The C parser makes each attribute anew on every access, so this module reads each once; parts that
many objects share are looked up by their bytes (`message_parts`). A test against a real API server
compares the rows of both forms.
"""

from __future__ import annotations

from collections.abc import Sequence
from sys import intern
from typing import Any, Final

from fairlead.model.event import Event
from fairlead.model.node import Node
from fairlead.model.node_choice import ANY_NODE
from fairlead.model.pod import (
    Container,
    ContainerState,
    ContainerStatus,
    GrantsByContainer,
    Pod,
    PodPhase,
)
from fairlead.model.resources import NOTHING
from fairlead.model.sharing import name_shared_gpus
from fairlead.wire import names
from fairlead.wire.gpus.allocation import parse_card_memory, parse_grants
from fairlead.wire.kube import message_parts as parts
from fairlead.wire.kube.message_parts import (
    NOTHING_KEPT,
    UNREPORTED,
    read_annotations,
    read_containers,
    read_pod_conditions,
)
from fairlead.wire.kube.messages import message_classes
from fairlead.wire.kube.objects import parse_gpu_slots, resized
from fairlead.wire.kube.protobuf import parse_message

_PHASES: Final = {phase.value: phase for phase in PodPhase} | {"": PodPhase.PENDING}
_UNKNOWN_PHASE: Final = PodPhase.UNKNOWN
_RUNNING: Final = ContainerState.RUNNING
_RUNNING_SINCE: Final = b"\x12\x0a\n\x08"
"""First bytes of a state that has only the time, in seconds, since when the container runs."""
_RUNNING_LENGTH: Final = len(_RUNNING_SINCE) + 8
_CLAIM_TAG: Final = b"\x52"
"""The first byte of a `persistentVolumeClaim` in its message. Most pods mount only their token, of
which no text has this letter, so that nothing has to be parsed.
"""
_NO_GRANTS: Final[GrantsByContainer] = {}

KNOWN_BYTES_MAX: Final = 8 << 20

_class = message_classes()
_Pod, _MorePod, _Change = (
    _class["Pod"].FromString,
    _class["MorePod"].FromString,
    _class["PodChange"].FromString,
)
_Volume = _class["PodVolume"].FromString
_PodStatus, _MoreStatus = _class["PodStatus"].FromString, _class["MoreStatus"].FromString
_times, _states, _labels, _owners, _amounts, _resources = (
    parts.times,
    parts.states,
    parts.labels,
    parts.owners,
    parts.amounts,
    parts.resources,
)


def parse_pod(pod: Any, raw: bytes) -> Pod:
    """The row of a pod and its bytes.

    Raises ValueError (quantity named) for amounts the API would refuse.
    """
    return read_pod(pod, raw)[0]


def read_pod(pod: Any, raw: bytes) -> tuple[Pod, bool]:
    """As `parse_pod`, and whether a container of the pod is being resized."""
    meta, spec, status = pod.metadata, pod.spec, pod.status
    raw_annotations, raw_owners = meta.annotations[:], meta.ownerReferences[:]
    annotations, may_grant, memory_limits_mib = (
        read_annotations(raw_annotations) if raw_annotations else NOTHING_KEPT
    )
    volumes = spec.volumes[:]
    statuses, grace_seconds = status.containerStatuses[:], spec.terminationGracePeriodSeconds
    asked = read_containers(spec.containers[:])
    containers, shares_gpus = _given(asked, statuses)
    is_resized = containers is not asked[0]
    init_containers: tuple[Container, ...] = ()
    init_statuses: tuple[ContainerStatus, ...] = ()
    gates: tuple[str, ...] = ()
    overhead, node, node_choice, more = NOTHING, spec.nodeName, ANY_NODE, None
    if spec.initContainers or status.initContainerStatuses or spec.overhead or spec.schedulingGates:
        more = _MorePod(raw)
        init_messages = more.status.initContainerStatuses[:]
        asked = read_containers(more.spec.initContainers[:])
        init_containers, inits_share_gpus = _given(asked, init_messages)
        is_resized = is_resized or init_containers is not asked[0]
        init_statuses, shares_gpus = (
            tuple(map(_status, init_messages)),
            shares_gpus or inits_share_gpus,
        )
        overhead = _amounts[tuple(more.spec.overhead[:])]
        gates = tuple(
            parse_message("core.PodSchedulingGate", gate).get("name", "")
            for gate in more.spec.schedulingGates
        )
    if shares_gpus or not node:  # as in JSON: needed only for pods that wait or share GPUs
        wished = (more or _MorePod(raw)).spec
        node_choice = parts.choices[
            (tuple(wished.nodeSelector), wished.affinity, tuple(wished.tolerations))
        ]
    row = Pod(
        intern(meta.namespace),
        meta.name,
        meta.uid,
        _labels[tuple(meta.labels[:])],
        annotations,
        _owners[tuple(raw_owners)] if raw_owners else (),
        intern(node),
        _PHASES.get(status.phase, _UNKNOWN_PHASE),
        status.reason,
        status.message,
        status.podIP,
        intern(status.hostIP),
        spec.priority,
        intern(spec.priorityClassName),
        intern(spec.schedulerName),
        gates,
        containers,
        init_containers,
        overhead,
        tuple(map(_status, statuses)),
        init_statuses,
        read_pod_conditions(status.conditions[:]),
        _times[meta.creationTimestamp],
        _times[status.startTime],
        _times[meta.deletionTimestamp],
        status.nominatedNodeName,
        parse_grants(annotations, containers) if may_grant else _NO_GRANTS,
        memory_limits_mib,
        node_choice,
        _resources[spec.resources][0],
        grace_seconds if grace_seconds or spec.HasField("terminationGracePeriodSeconds") else None,
        spec.preemptionPolicy == "Never",
        _claims(volumes) if volumes and _CLAIM_TAG in b"".join(volumes) else (),
    )
    return row, is_resized


def _claims(volumes: Sequence[bytes]) -> tuple[str, ...]:
    """Names of the claims among them."""
    names = (_Volume(each).source.persistentVolumeClaim.claimName for each in volumes)
    return tuple(filter(None, names))


class ChangedPods:
    """Parses pods that a watch sends repeatedly.

    Most events change only a pod's status. Then only the status is parsed; the rest of the pod is
    looked up by its bytes, if a recent event had the same.
    """

    def __init__(self) -> None:
        self._known: dict[bytes, Pod] = {}
        self._bytes = 0

    def row_and_version(self, raw: bytes) -> tuple[Pod, str]:
        """The row, as of `parse_pod`, and the resource version of the object."""
        change = _Change(raw)
        meta, raw_status = change.metadata, change.status
        version = meta.resourceVersion
        meta.ClearField("resourceVersion")
        meta.ClearField("managedFields")
        change.ClearField("status")
        lasting = change.SerializeToString()
        known = self._known.get(lasting)
        row = None if known is None else _with_status(known, raw_status)
        if row is None:
            row, is_resized = read_pod(_Pod(raw), raw)
            if row.node and not is_resized:
                self._keep(lasting, row)
        return row, version

    def _keep(self, lasting: bytes, row: Pod) -> None:
        self._bytes += len(lasting)
        if self._bytes > KNOWN_BYTES_MAX:
            self._known.clear()
            self._bytes = len(lasting)
        self._known[lasting] = row


def _with_status(pod: Pod, raw: bytes) -> Pod | None:
    """The pod with another status; None while a container of it is being resized."""
    status = _PodStatus(raw)
    statuses = status.containerStatuses[:]
    init_messages = (
        _MoreStatus(raw).initContainerStatuses[:] if status.initContainerStatuses else ()
    )
    if (
        _grown(pod.containers, statuses) is not pod.containers
        or _grown(pod.init_containers, init_messages) is not pod.init_containers
    ):
        return None
    return Pod(
        pod.namespace,
        pod.name,
        pod.uid,
        pod.labels,
        pod.annotations,
        pod.owners,
        pod.node,
        _PHASES.get(status.phase, _UNKNOWN_PHASE),
        status.reason,
        status.message,
        status.podIP,
        intern(status.hostIP),
        pod.priority,
        pod.priority_class,
        pod.scheduler,
        pod.gates,
        pod.containers,
        pod.init_containers,
        pod.overhead,
        tuple(map(_status, statuses)),
        tuple(map(_status, init_messages)),
        read_pod_conditions(status.conditions[:]),
        pod.created_at,
        _times[status.startTime],
        pod.deleted_at,
        status.nominatedNodeName,
        pod.grants,
        pod.memory_limits_mib,
        pod.node_choice,
        pod.whole,
        pod.grace_seconds,
        pod.never_preempts,
        pod.claims,
    )


def parse_node(node: Any, _: bytes = b"") -> Node:
    """A node row; raises ValueError (quantity named) for amounts the API would refuse."""
    meta, spec, status = node.metadata, node.spec, node.status
    info = status.nodeInfo
    annotations, labels = read_annotations(meta.annotations[:])[0], _labels[tuple(meta.labels[:])]
    addresses = (parse_message("core.NodeAddress", raw) for raw in status.addresses)
    return Node(
        name=meta.name,
        uid=meta.uid,
        labels=labels,
        annotations=annotations,
        capacity=_amounts[tuple(status.capacity)],
        allocatable=_amounts[tuple(status.allocatable)],
        addresses=tuple((each.get("type", ""), each.get("address", "")) for each in addresses),
        conditions=tuple([parts.node_conditions[raw] for raw in status.conditions[:]]),
        taints=tuple([parts.taints[raw] for raw in spec.taints[:]]),
        unschedulable=spec.unschedulable,
        created_at=_times[meta.creationTimestamp],
        kubelet_version=info.kubeletVersion,
        runtime_version=info.containerRuntimeVersion,
        os_image=info.osImage,
        gpus=parse_gpu_slots(annotations.get(names.ANNOTATION_GPUS, "")),
        card_memory_mib=parse_card_memory(labels),
    )


def parse_event(event: Any, _: bytes = b"") -> Event:
    """An event row; `at` is the newest of the event's times."""
    meta, about, series = event.metadata, event.involvedObject, event.series
    times = (
        series.lastObservedTime,
        event.lastTimestamp,
        event.eventTime,
        event.firstTimestamp,
        meta.creationTimestamp,
    )
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


def _given(
    asked: tuple[tuple[Container, ...], bool], statuses: Sequence[Any]
) -> tuple[tuple[Container, ...], bool]:
    """Containers with resources allocated during a resize; whether one requests shared GPUs."""
    grown = _grown(asked[0], statuses)
    return asked if grown is asked[0] else (grown, name_shared_gpus(grown))


def _grown(containers: tuple[Container, ...], statuses: Sequence[Any]) -> tuple[Container, ...]:
    """The containers with allocated resources; the same tuple where none exceeds its request."""
    for each in statuses:
        if raw := each.allocatedResources[:]:
            containers = resized(containers, each.name, _amounts[tuple(raw)])
    return containers


def _status(message: Any) -> ContainerStatus:
    raw, last = message.state, message.lastState
    name, ready, restarts = intern(message.name), message.ready, message.restartCount
    ended = _states[last].finished_at if last else None
    if len(raw) == _RUNNING_LENGTH and raw.startswith(_RUNNING_SINCE):
        return ContainerStatus(
            name,
            ready,
            restarts,
            _RUNNING,
            "",
            "",
            None,
            None,
            message.started,
            _times[raw[4:]],
            None,
            ended,
        )
    state = _states[raw] if raw or message.HasField("state") else UNREPORTED
    return ContainerStatus(
        name,
        ready,
        restarts,
        *state[:5],
        state.state is _RUNNING and message.started,
        state.started_at,
        state.finished_at,
        ended,
    )
