"""The API server as the scheduler extender needs it (`ports.SharingApi`): follow three kinds, carry actions out, keep a Lease.

No answer to a binding is not a no. Only what the API server said is known; a time-out, a lost connection, a 5xx, and "already assigned"
(perhaps by an earlier try of ours) are unknown, and the caller finds out later.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec import structs

from fairlead.edge.connection.rate_limit import RateLimit
from fairlead.edge.kube.api_failure import ApiFailure, Conflict
from fairlead.edge.kube.api_page import ItemReader
from fairlead.edge.kube.api_request import ApiRequest, Selection, create_request, encode_body, patch_request, with_query
from fairlead.edge.kube.followed import NODE_SUBJECT
from fairlead.edge.kube.kube_api import READ_SECONDS, KubeApi
from fairlead.edge.kube.reflector import Reflector
from fairlead.edge.kube.resource import CONFIG_MAPS, EVENTS, PODS, Resource
from fairlead.errors import Forbidden, NotFound, OutsideError
from fairlead.model.actions import Action, BindPod, Outcome, Result, TellEvent, TouchPod, WriteGrants
from fairlead.model.node import Node
from fairlead.model.pod import Pod
from fairlead.model.resources import SHARED_GPU_PREFIX
from fairlead.model.sharing import Withheld
from fairlead.ports import LeaseRecord, PodRows, RowSink
from fairlead.wire.gpus.allocation import render_action
from fairlead.wire.gpus.topology import WireConfigMap, parse_withheld_map
from fairlead.wire.kube.objects import WirePod, parse_pod
from fairlead.wire.names import ANNOTATION_GPU_RETRY, ANNOTATION_WANTED_BY, UNHEALTHY_GPUS_NAMESPACE

LEASES: Final = Resource("coordination.k8s.io", "v1", "leases", kind="Lease")
COMPONENT: Final = "fairlead-scheduler"
LEAST_SECONDS: Final = 0.25
"""With less than this left of the Lease a write is not sent: it would hardly be decided in time."""
GRACE_SECONDS: Final = 1.0
"""So long after the API server should have decided its answer is waited for."""
EVENTS_PER_SECOND: Final = 10
EVENTS_BURST: Final = 50
_NOT_DONE: Final = range(400, 500)


class KubeSharingApi:
    """`lease`: namespace and name. The rate bounds bindings and what belongs to them; events have a smaller one of their own."""

    def __init__(self, api: KubeApi, lease: tuple[str, str], per_second: float = 100, burst: int = 200) -> None:
        self._api = api
        self._lease = lease
        self._rate = RateLimit(per_second, burst)
        self._events = RateLimit(EVENTS_PER_SECOND, EVENTS_BURST)

    async def follow(self, nodes: RowSink[Node], pods: PodRows, withheld: RowSink[Withheld]) -> None:
        withheld_reader = ItemReader(CONFIG_MAPS, WireConfigMap, parse_withheld_map)
        of_system = Selection(namespace=UNHEALTHY_GPUS_NAMESPACE)
        optional: Reflector[Withheld] = Reflector(
            self._api, withheld_reader, withheld, selection=of_system, on_change=lambda: _empty_if_forbidden(optional, withheld)
        )
        async with asyncio.TaskGroup() as group:
            group.create_task(optional.run())
            group.create_task(Reflector(self._api, NODE_SUBJECT.reader(NODE_SUBJECT.resource), nodes).run())
            pod_reader = ItemReader(PODS, WirePod, parse_pod, SHARED_GPU_PREFIX.encode(), pods.holds)
            group.create_task(Reflector(self._api, pod_reader, pods).run())

    async def apply(self, action: Action, left: Callable[[], float]) -> Outcome:
        match action:
            case BindPod():
                return await self._write(_binding_request(action), left)
            case WriteGrants():
                return await self._write(_annotate_request(action.pod, render_action(action, time.time())), left)
            case TouchPod():
                written = {ANNOTATION_GPU_RETRY: str(round(time.time() * 1000))}
                return await self._write(_annotate_request(action.pod, written), lambda: READ_SECONDS)
            case TellEvent():
                await self._events.wait()
                return await self._send(_event_request(action), None)

    async def _write(self, request: ApiRequest, left: Callable[[], float]) -> Outcome:
        """`left` is asked after every wait: the rate's, the API server's own Retry-After, that for fresh credentials."""
        await self._rate.wait()
        sent = 0

        def anew() -> ApiRequest:
            nonlocal sent
            seconds = left()
            if seconds < LEAST_SECONDS:
                raise _NotSent
            sent += 1
            path = with_query(request.path, timeout=f"{seconds:.3f}s")
            return structs.replace(request, path=path, seconds=seconds + GRACE_SECONDS)

        try:
            return await self._send(request, anew)
        except _NotSent:
            return Outcome(Result.UNKNOWN if sent else Result.REFUSED, "the lease has run out")

    async def _send(self, request: ApiRequest, anew: Callable[[], ApiRequest] | None) -> Outcome:
        try:
            await self._api.send(request, anew=anew)
        except ApiFailure as error:
            is_gone = request.verb == "patch" and error.status in (404, 409)  # 409: another pod of the same name
            is_known = error.status in _NOT_DONE and error.status != 408 and "already assigned" not in error.message
            return Outcome(Result.GONE if is_gone else Result.REFUSED if is_known else Result.UNKNOWN, error.message)
        except OutsideError as error:
            return Outcome(Result.UNKNOWN, error.what)
        return Outcome()

    async def get_pod(self, namespace: str, name: str) -> Pod | None:
        await self._rate.wait()
        try:
            return parse_pod(await self._api.get(PODS, name, namespace, WirePod))
        except NotFound:
            return None

    async def get_lease(self) -> LeaseRecord | None:
        namespace, name = self._lease
        try:
            return _parse_lease(await self._api.get(LEASES, name, namespace))
        except NotFound:
            return None

    async def put_lease(self, record: LeaseRecord) -> LeaseRecord | None:
        namespace, name = self._lease
        metadata = {"name": name, "namespace": namespace, "annotations": {ANNOTATION_WANTED_BY: record.wanted_by}}
        renewed = record.renewed or _micro_time(time.time())
        spec = {"holderIdentity": record.holder, "leaseDurationSeconds": record.seconds, "renewTime": renewed}
        lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}
        spec["leaseTransitions"] = record.transitions
        try:
            if not record.version:
                return _parse_lease(await self._api.create(LEASES, lease, namespace))
            metadata["resourceVersion"] = record.version
            return _parse_lease(await self._api.update(LEASES, name, lease, namespace))
        except Conflict:
            return None


class _NotSent(Exception):
    """The Lease has run out, and the request was not sent."""


def _binding_request(action: BindPod) -> ApiRequest:
    pod = action.pod
    metadata = {"name": pod.name, "uid": pod.uid, "annotations": render_action(action, time.time())}
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": {"kind": "Node", "name": action.node}}
    return ApiRequest("create", "POST", PODS.path(pod.namespace, pod.name, "binding"), encode_body(binding))


def _annotate_request(pod: Pod, annotations: Mapping[str, str]) -> ApiRequest:
    return patch_request(PODS, pod.name, {"metadata": {"uid": pod.uid, "annotations": dict(annotations)}}, pod.namespace)


def _event_request(told: TellEvent) -> ApiRequest:
    subject = told.subject
    is_pod = isinstance(subject, Pod)
    namespace = subject.namespace if isinstance(subject, Pod) else "default"
    now = _micro_time(time.time())
    about = {"kind": "Pod" if is_pod else "Node", "apiVersion": "v1", "name": subject.name, "uid": subject.uid}
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{subject.name[:200]}.{time.time_ns():x}", "namespace": namespace},
        "involvedObject": {**about, **({"namespace": namespace} if is_pod else {})},
        "reason": told.reason,
        "message": told.message[:1024],
        "type": "Warning",
        "source": {"component": COMPONENT},
        "firstTimestamp": now[:19] + "Z",
        "lastTimestamp": now[:19] + "Z",
        "count": 1,
    }
    return create_request(EVENTS, event, namespace)


def _empty_if_forbidden(reflector: Reflector[Withheld], sink: RowSink[Withheld]) -> None:
    if isinstance(reflector.last_error, Forbidden | NotFound):
        sink.replace({}, ())


def _parse_lease(lease: dict[str, Any]) -> LeaseRecord:
    metadata, spec = lease["metadata"], lease.get("spec") or {}
    return LeaseRecord(
        holder=spec.get("holderIdentity") or "",
        seconds=spec.get("leaseDurationSeconds") or 0,
        renewed=spec.get("renewTime") or "",
        wanted_by=(metadata.get("annotations") or {}).get(ANNOTATION_WANTED_BY, ""),
        transitions=spec.get("leaseTransitions") or 0,
        version=metadata.get("resourceVersion") or "",
    )


def _micro_time(at: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at)) + f".{int(at % 1 * 1_000_000):06d}Z"
