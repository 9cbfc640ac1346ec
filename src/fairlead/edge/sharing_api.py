"""The API server as the scheduler extender needs it (`ports.SharingApi`): follow three kinds, bind in one call, keep a Lease, warn.

What a newcomer gets wrong: no answer to a binding is not a no. Only what the API server said is known; a time-out, a lost connection,
a 5xx, and "already assigned" (perhaps by an earlier try of ours) are unknown, and the caller finds out later.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any, Final

from fairlead.edge.api_failure import ApiFailure, Conflict
from fairlead.edge.api_page import ItemReader
from fairlead.edge.api_request import ApiRequest, Selection, encode_body, with_query
from fairlead.edge.followed import NODE_SUBJECT, POD_SUBJECT
from fairlead.edge.kube_api import KubeApi
from fairlead.edge.rate_limit import RateLimit
from fairlead.edge.reflector import Reflector
from fairlead.edge.resource import CONFIG_MAPS, EVENTS, PODS, Resource
from fairlead.errors import Forbidden, NotFound
from fairlead.model.node import Node
from fairlead.model.pod import Pod
from fairlead.model.sharing import Withheld
from fairlead.ports import BindOutcome, LeaseRecord, RowSink
from fairlead.wire.gpu_topology import WireConfigMap, parse_withheld_map
from fairlead.wire.kube import WirePod, parse_pod
from fairlead.wire.names import ANNOTATION_WANTED_BY, UNHEALTHY_GPUS_NAMESPACE

LEASES: Final = Resource("coordination.k8s.io", "v1", "leases", kind="Lease")
COMPONENT: Final = "fairlead-scheduler"
BIND_SECONDS: Final = 10
"""The API server gives a binding up after so long itself: what has not come true by then never will."""
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

    async def follow(self, nodes: RowSink[Node], pods: RowSink[Pod], withheld: RowSink[Withheld]) -> None:
        withheld_reader = ItemReader(CONFIG_MAPS, WireConfigMap, parse_withheld_map)
        of_system = Selection(namespace=UNHEALTHY_GPUS_NAMESPACE)
        optional: Reflector[Withheld] = Reflector(
            self._api, withheld_reader, withheld, selection=of_system, on_change=lambda: _empty_if_forbidden(optional, withheld)
        )
        async with asyncio.TaskGroup() as group:
            group.create_task(optional.run())
            group.create_task(Reflector(self._api, NODE_SUBJECT.reader(NODE_SUBJECT.resource), nodes).run())
            group.create_task(Reflector(self._api, POD_SUBJECT.reader(POD_SUBJECT.resource), pods).run())

    async def bind(self, pod: Pod, node: str, annotations: Mapping[str, str]) -> BindOutcome:
        await self._rate.wait()
        metadata = {"name": pod.name, "uid": pod.uid, "annotations": dict(annotations)}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": {"kind": "Node", "name": node}}
        path = with_query(PODS.path(pod.namespace, pod.name, "binding"), timeout=f"{BIND_SECONDS}s")
        try:
            async with asyncio.timeout(BIND_SECONDS + 1):
                await self._api.send(ApiRequest("create", "POST", path, encode_body(binding)))
        except ApiFailure as error:
            is_known = error.status in _NOT_DONE and error.status != 408 and "already assigned" not in error.message
            return BindOutcome(error.message, is_known)
        except TimeoutError:
            return BindOutcome(f"the API server did not answer for {BIND_SECONDS + 1} s", is_known=False)
        return BindOutcome()

    async def get_pod(self, namespace: str, name: str) -> Pod | None:
        await self._rate.wait()
        try:
            return parse_pod(await self._api.get(PODS, name, namespace, WirePod))
        except NotFound:
            return None

    async def annotate(self, pod: Pod, annotations: Mapping[str, str]) -> None:
        await self._rate.wait()
        patch = {"metadata": {"uid": pod.uid, "annotations": dict(annotations)}}
        try:
            await self._api.patch(PODS, pod.name, patch, pod.namespace)
        except Conflict as error:  # another pod of the same name
            raise NotFound("kubernetes", error.message) from error

    async def warn(self, subject: Pod | Node, reason: str, message: str) -> None:
        await self._events.wait()
        is_pod = isinstance(subject, Pod)
        namespace = subject.namespace if isinstance(subject, Pod) else "default"
        now = _micro_time(time.time())
        about = {"kind": "Pod" if is_pod else "Node", "apiVersion": "v1", "name": subject.name, "uid": subject.uid}
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{subject.name[:200]}.{time.time_ns():x}", "namespace": namespace},
            "involvedObject": {**about, **({"namespace": namespace} if is_pod else {})},
            "reason": reason,
            "message": message[:1024],
            "type": "Warning",
            "source": {"component": COMPONENT},
            "firstTimestamp": now[:19] + "Z",
            "lastTimestamp": now[:19] + "Z",
            "count": 1,
        }
        await self._api.create(EVENTS, event, namespace)

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
