"""Carries out actions on one API server (`ports.Cluster.apply`), for services.

`object_writer` is the module for the command line.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final
from urllib.parse import parse_qsl

from msgspec import structs

from fairlead.edge.connection.rate_limit import RateLimit
from fairlead.edge.kube.api_discovery import Discovery
from fairlead.edge.kube.api_request import ApiRequest, encode_body, with_query
from fairlead.edge.kube.events import event_request, object_event_request
from fairlead.edge.kube.kube_api import KubeApi
from fairlead.edge.kube.lease import KubeLease
from fairlead.edge.kube.object_actions import (
    known_resource,
    no_such_kind,
    not_sent,
    object_request,
    outcome_of_answer,
    outcome_of_failure,
    pod_request,
    scale_request,
    target_of,
    tree_status_request,
)
from fairlead.edge.kube.resource import PODS, Resource
from fairlead.errors import FairleadError
from fairlead.model.actions import (
    Action,
    AdmitPod,
    BindPod,
    CreateObject,
    DeleteObject,
    EvictPod,
    ObjectRef,
    Outcome,
    PatchObject,
    RecordEvent,
    RecordObjectEvent,
    Result,
    ScaleJob,
    SetPodCondition,
    TouchPod,
    WriteGrants,
    WriteTreeStatus,
)
from fairlead.model.pod import Pod
from fairlead.wire.gpus.allocation import render_action
from fairlead.wire.names import ANNOTATION_GPU_RETRY

LEAST_SECONDS: Final = 0.25
"""Seconds left of the Lease below which no write is sent: it would hardly be done in time."""
GRACE_SECONDS: Final = 1.0
"""Seconds to wait for the answer beyond the time in which the API server should have decided."""
EVENTS_PER_SECOND: Final = 10
EVENTS_BURST: Final = 50


class KubeWriter:
    """`rate` limits writes per second; Events have a separate, lower limit.

    `lease`: its field manager is that of the writes that only the holder may make.
    """

    def __init__(self, api: KubeApi, rate: RateLimit, lease: KubeLease | None = None) -> None:
        self._api = api
        self._rate = rate
        self._lease = lease
        self._events = RateLimit(EVENTS_PER_SECOND, EVENTS_BURST)
        self._discovery: Discovery | None = None

    async def apply(self, action: Action, left: Callable[[], float] | None = None) -> Outcome:
        """See `ports.Cluster.apply`."""
        # read before any wait: it names the term in which this was decided
        manager = "" if self._lease is None else self._lease.field_manager
        await (
            self._events if isinstance(action, RecordEvent | RecordObjectEvent) else self._rate
        ).wait()
        try:
            request = await self._request(action, manager)
        except FairleadError as error:
            return not_sent(error)
        try:
            answer = await self._api.send(
                request, anew=None if left is None else _Guard(request, left)
            )
        except _LeaseOver as over:
            return Outcome(
                Result.UNKNOWN if over.was_sent else Result.REFUSED, "the lease has run out"
            )
        except FairleadError as error:
            return outcome_of_failure(action, error)
        if isinstance(action, CreateObject | PatchObject | DeleteObject):
            return outcome_of_answer(action, answer.body)
        return Outcome()

    async def _request(self, action: Action, manager: str) -> ApiRequest:
        now = self._api.clock.now()
        match action:
            case BindPod():
                return _in_term(_binding_request(action, now), manager)
            case WriteGrants():
                grants = render_action(action, now)
                return _in_term(_annotate_request(action.pod, grants), manager)
            case TouchPod():
                return _annotate_request(action.pod, {ANNOTATION_GPU_RETRY: str(round(now * 1000))})
            case RecordEvent():
                return event_request(action, now)
            case RecordObjectEvent():
                return object_event_request(action, now)
            case AdmitPod() | EvictPod() | SetPodCondition():
                return _in_term(pod_request(action), manager)
            case ScaleJob():
                return _in_term(scale_request(action), manager)
            case WriteTreeStatus():
                return _in_term(tree_status_request(action), manager)
            case PatchObject():
                target = await self._resource(action.target)
                return _in_term(object_request(action, target), manager)
            case CreateObject() | DeleteObject():
                return object_request(action, await self._resource(target_of(action)))

    async def _resource(self, target: ObjectRef) -> Resource:
        found = known_resource(target, self._discovery)
        if found is None:
            self._discovery = await self._api.discovery([target.group_version[0]])
            found = known_resource(target, self._discovery)
        if found is None:
            raise no_such_kind(target)
        return found


class _LeaseOver(Exception):
    """The Lease has run out, and the request is not sent (again)."""

    def __init__(self, was_sent: bool) -> None:
        self.was_sent = was_sent


class _Guard:
    """The request as it is sent now: the API server must decide within what is left of the Lease,
    and nothing is sent when nothing is left.

    It is called after every wait: for the rate, for the API server's Retry-After, and for new
    credentials.
    """

    def __init__(self, request: ApiRequest, left: Callable[[], float]) -> None:
        self._request = request
        self._left = left
        self._was_sent = False

    def __call__(self) -> ApiRequest:
        seconds = self._left()
        if seconds < LEAST_SECONDS:
            raise _LeaseOver(self._was_sent)
        self._was_sent = True
        path = with_query(self._request.path, timeout=f"{seconds:.3f}s")
        return structs.replace(self._request, path=path, seconds=seconds + GRACE_SECONDS)


def _in_term(request: ApiRequest, manager: str) -> ApiRequest:
    """The request with the field manager of the term in which it was decided."""
    if not manager:
        return request
    path, _, query = request.path.partition("?")
    kept = {key: value for key, value in parse_qsl(query) if key != "fieldManager"}
    return structs.replace(request, path=with_query(path, **kept, fieldManager=manager))


def _binding_request(action: BindPod, now: float) -> ApiRequest:
    pod = action.pod
    metadata = {"name": pod.name, "uid": pod.uid, "annotations": render_action(action, now)}
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": metadata,
        "target": {"kind": "Node", "name": action.node},
    }
    return ApiRequest(
        "create", "POST", PODS.path(pod.namespace, pod.name, "binding"), encode_body(binding)
    )


def _annotate_request(pod: Pod, annotations: Mapping[str, str]) -> ApiRequest:
    target = structs.replace(PODS.ref(pod.name, pod.namespace), uid=pod.uid)
    return object_request(
        PatchObject(target, {"metadata": {"annotations": dict(annotations)}}), PODS
    )
