"""Reads and changes training jobs for one command, in as few requests as possible.

Blocking, for the CLI. See docs/spec/arena-cli.md#requests. A kind that may not be read does not
affect the others. The answer is a snapshot whose `sources` have the result for each kind; the
command decides whether that is an error. Kinds are arguments: the module refers to none by name.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from fairlead.edge.kube.api_discovery import Discovery
from fairlead.edge.kube.api_failure import (
    ApiFailure,
    ForbiddenByServer,
    NotServed,
    Unauthorized,
    Unreachable,
)
from fairlead.edge.kube.api_page import UNREADABLE, ItemReader
from fairlead.edge.kube.api_request import ApiRequest, Selection, with_query
from fairlead.edge.kube.kube_blocking import KubeBlocking, in_parallel
from fairlead.edge.kube.object_writer import ObjectWriter
from fairlead.edge.kube.resource import CONFIG_MAPS, EVENTS, PODS, SERVICES, Resource
from fairlead.edge.kube.who_am_i import user_name
from fairlead.edge.queries.companions import delete_with_companions
from fairlead.edge.queries.isolation import config_data, is_absent, isolated_namespaces
from fairlead.errors import NotFound, OutsideError
from fairlead.kinds.parts.companions import beside_job, of_gone_job
from fairlead.kinds.parts.kind import source_of
from fairlead.kinds.registry import kind_of, one_per_resource
from fairlead.model.actions import DeleteObject, Result
from fairlead.model.devices.gpu import GpuReading
from fairlead.model.event import Event
from fairlead.model.jobs.job import Job
from fairlead.model.pod import Pod
from fairlead.model.snapshot import GPU_TELEMETRY, ClusterSnapshot, build_snapshot
from fairlead.model.source import Source, SourceState
from fairlead.wire.kube.forms import JsonForm
from fairlead.wire.kube.objects import EVENT_FORM, POD_FORM

if TYPE_CHECKING:
    from fairlead.kinds.parts.kind import JobKind
    from fairlead.ports import Streams
    from fairlead.wire.kube.exec_channels import ProgramEnd

CHART_LABEL: Final = ("createdBy", "arena")
"""Labels of the ConfigMap `NAME-TYPE` that the reference arena keeps for each of its jobs."""

Rows = list[Job] | list[Pod]


class JobQuery:
    """The training jobs of one cluster for one command.

    `readings` returns GPU values; it raises OutsideError when they cannot be read. `now`: the
    cluster's time, which on a laptop may differ from this machine's.
    """

    def __init__(
        self,
        api: KubeBlocking,
        readings: Callable[[str], Sequence[GpuReading]] | None = None,
        now: Callable[[], float] = time.time,
        arena_namespace: str = "",
    ) -> None:
        self._now = now
        self._api = api
        self._readings = readings
        self._discovered: Discovery | None = None
        self._arena_namespace = arena_namespace
        self._isolated: dict[str, Mapping[str, str]] = {}

    def read_jobs(
        self,
        kinds: Sequence[JobKind],
        namespace: str,
        name: str = "",
        *,
        with_pods: bool = True,
        with_readings: bool = False,
    ) -> ClusterSnapshot:
        """See `cli.context.ClusterJobs`."""
        isolated = self._prepare(kinds, namespace)
        types = frozenset(kind.TYPE for kind in kinds)
        served = [(kind, self._resource(kind)) for kind in one_per_resource(kinds)]
        reads = [_Read(kind, resource, types) for kind, resource in served if resource is not None]
        sources = {
            source_of(kind): Source(source_of(kind), SourceState.MISSING, "not served")
            for kind, resource in served
            if resource is None
        }
        jobs, pods = (
            self._one(reads, namespace, name, sources, with_pods=with_pods)
            if name
            else self._all(reads, namespace, sources)
        )
        pods += self._older_pods(jobs, pods, namespace, name, sources) if with_pods else []
        snapshot = build_snapshot(
            pods=pods, jobs=jobs, sources=sources.values(), taken_at=self._now(), isolated=isolated
        )
        return self._with_readings(snapshot, namespace) if with_readings else snapshot

    def read_events(self, uids: Sequence[tuple[str, str]]) -> list[tuple[Event, ...]]:
        reader = ItemReader(EVENTS, EVENT_FORM)

        def one(namespace: str, uid: str) -> tuple[Event, ...]:
            rows = self._api.list_all(
                reader, Selection(namespace, fields=f"involvedObject.uid={uid}")
            ).rows.values()
            return tuple(sorted(rows, key=lambda event: event.order))

        return [_value(each) for each in in_parallel([partial(one, *each) for each in uids])]

    def delete(self, kind: JobKind, job: Job) -> bool:
        resource = self._resource(kind)
        if resource is None:
            return False
        deleted, _ = delete_with_companions(
            self._api, resource.ref(job.name, job.namespace), beside_job(job), job.namespace
        )
        if deleted.result is Result.GONE:
            return False
        if job.labels.get("heritage") not in (None, "fairlead"):
            delete_chart_note(self._api, f"{job.name}-{job.type}", job.namespace)
        return True

    def delete_left(self, kinds: Sequence[JobKind], namespace: str, name: str) -> list[str]:
        companions = of_gone_job(name, [kind.TYPE for kind in kinds])
        return delete_with_companions(self._api, None, companions, namespace)[1]

    def log(self, namespace: str, pod: str, options: Mapping[str, str | int]) -> Iterator[bytes]:
        path = with_query(PODS.path(namespace, pod, "log"), **options)
        return self._api.stream(ApiRequest("get", "GET", path, accept="*/*"))

    def execute(
        self, namespace: str, pod: str, container: str, command: Sequence[str], streams: Streams
    ) -> ProgramEnd:
        from fairlead.edge.attach.exec_stream import execute  # wsproto is for those who attach

        return execute(self._api, namespace, pod, container, command, streams)

    def service_url(self, namespace: str, service: str, host: str) -> str:
        try:
            found: _Service = self._api.get(SERVICES, service, namespace, type=_Service)
        except (NotFound, ForbiddenByServer):
            return ""
        ports = found.spec.ports or [_Port()]
        ingress = found.status.load_balancer.ingress or [_Ingress()]
        balancer = ingress[0].ip or ingress[0].hostname
        port = ports[0].port if balancer else ports[0].node_port
        return f"http://{balancer or host}:{port}" if (balancer or host) and port else ""

    def user(self) -> str:
        return user_name(self._api)

    def config(self, namespace: str, name: str) -> Mapping[str, str]:
        return config_data(self._api, namespace, name)

    def is_absent(self, namespace: str) -> bool:
        return is_absent(self._api, namespace)

    def _all(
        self, reads: Sequence[_Read], namespace: str, sources: dict[str, Source]
    ) -> tuple[list[Job], list[Pod]]:
        """Reads every kind and every family of pods in parallel."""
        families = dict.fromkeys(label for read in reads for label in read.kind.POD_LABELS)
        calls: list[Callable[[], Rows]] = [partial(self._list, read, namespace) for read in reads]
        calls += [partial(self._pods, namespace, label) for label in families]
        results = in_parallel(calls)
        jobs = sorted_out(
            zip([source_of(read.kind) for read in reads], results, strict=False), sources
        )
        pods = sorted_out((("pods", each) for each in results[len(reads) :]), sources)
        return jobs, pods

    def _one(
        self,
        reads: Sequence[_Read],
        namespace: str,
        name: str,
        sources: dict[str, Source],
        *,
        with_pods: bool,
    ) -> tuple[list[Job], list[Pod]]:
        """One GET per kind, and the pods of the jobs found if more than names is needed."""
        calls: list[Callable[[], Rows]] = [
            partial(self._get, read, namespace, name) for read in reads
        ]
        jobs: list[Job] = sorted_out(
            zip([source_of(read.kind) for read in reads], in_parallel(calls), strict=True), sources
        )
        selectors = dict.fromkeys(
            chain.from_iterable(kind_of(job).pod_selectors(job) for job in jobs if with_pods)
        )
        lists: list[Callable[[], Rows]] = [
            partial(self._pods, namespace, selector) for selector in selectors
        ]
        return jobs, sorted_out((("pods", each) for each in in_parallel(lists)), sources)

    def _older_pods(
        self,
        jobs: list[Job],
        pods: list[Pod],
        namespace: str,
        name: str,
        sources: dict[str, Source],
    ) -> list[Pod]:
        """Pods of older operators.

        They are read only if a job is active and none of its pods has the current labels.
        """
        if "pods" in sources and not sources["pods"].is_ok:
            return []
        snapshot = ClusterSnapshot(pods=tuple(pods))
        bare = [
            job
            for job in jobs
            if job.started_at is not None
            and not job.suspended
            and (name or job.finished_at is None)
        ]
        kinds = [kind_of(job) for job in bare if not kind_of(job).pods_of(job, snapshot)]
        labels = dict.fromkeys(label for kind in kinds for label in kind.OLDER_POD_LABELS)
        lists: list[Callable[[], Rows]] = [
            partial(self._pods, namespace, f"{label}={name}" if name else label) for label in labels
        ]
        return sorted_out((("pods", each) for each in in_parallel(lists)), sources)

    def _list(self, read: _Read, namespace: str) -> list[Job]:
        reader = ItemReader(
            read.resource,
            JsonForm(read.kind.WIRE, lambda wire: read.kind.parse(wire, read.resource.version)),
        )
        return [
            job
            for job in self._api.list_all(reader, Selection(namespace or None)).rows.values()
            if job.type in read.types
        ]

    def _get(self, read: _Read, namespace: str, name: str) -> list[Job]:
        try:
            wire = self._api.get(read.resource, name, namespace, type=read.kind.WIRE)
        except NotServed:
            return []
        try:
            return [
                job
                for job in (read.kind.parse(wire, read.resource.version),)
                if job.type in read.types
            ]
        except UNREADABLE as error:
            raise OutsideError(
                "kubernetes",
                f"{read.resource.label} `{namespace}/{name}` cannot be read: {error}",
            ) from error

    def _pods(self, namespace: str, selector: str) -> list[Pod]:
        reader = ItemReader(PODS, POD_FORM)
        return list(
            self._api.list_all(reader, Selection(namespace or None, labels=selector)).rows.values()
        )

    def _resource(self, kind: JobKind) -> Resource | None:
        return self._discover([kind]).find(kind.GROUP, kind.PLURAL, kind.VERSIONS)

    def _prepare(self, kinds: Sequence[JobKind], namespace: str) -> Mapping[str, str]:
        """Reads what the cluster serves and which namespaces isolate users, in parallel and
        once, also for a command that repeats every second.
        """
        if namespace not in self._isolated:
            asked = partial(isolated_namespaces, self._api, namespace, self._arena_namespace)
            calls: list[Callable[[], Any]] = [partial(self._discover, kinds), asked]
            _, self._isolated[namespace] = map(_value, in_parallel(calls))
        return self._isolated[namespace]

    def _discover(self, kinds: Sequence[JobKind]) -> Discovery:
        """Reads discovery once; a command passes all its kinds first."""
        if self._discovered is None:
            self._discovered = self._api.discovery({kind.GROUP for kind in kinds})
        return self._discovered

    def _with_readings(self, snapshot: ClusterSnapshot, namespace: str) -> ClusterSnapshot:
        """Adds readings, only if a pod is on a node, and only of those pods' cards."""
        holding = {(pod.namespace, pod.name) for pod in snapshot.pods if pod.is_holding}
        if not holding or self._readings is None:
            return snapshot
        try:
            found = self._readings(namespace)
        except OutsideError as error:
            return snapshot.with_gpus(
                (), Source(GPU_TELEMETRY, SourceState.FAILING, error.what, error.hint)
            )
        mine = [
            reading
            for reading in found
            if any((holder.namespace, holder.pod) in holding for holder in reading.holders)
        ]
        return snapshot.with_gpus(mine, Source(GPU_TELEMETRY))


class _Read(Struct, frozen=True):
    """A kind, its version in this cluster, and the wanted types of jobs: a resource may have
    jobs of several types.
    """

    kind: Any
    resource: Resource
    types: frozenset[str]


class _Port(Struct, frozen=True, rename="camel"):
    port: int | None = None
    node_port: int | None = None


class _ServiceSpec(Struct, frozen=True):
    ports: list[_Port] | None = None


class _Ingress(Struct, frozen=True):
    ip: str | None = None
    hostname: str | None = None


class _LoadBalancer(Struct, frozen=True):
    ingress: list[_Ingress] | None = None


class _ServiceStatus(Struct, frozen=True, rename="camel"):
    load_balancer: _LoadBalancer = _LoadBalancer()


class _Service(Struct, frozen=True):
    """The fields of a Service that have its address."""

    spec: _ServiceSpec = _ServiceSpec()
    status: _ServiceStatus = _ServiceStatus()


def delete_chart_note(api: KubeBlocking, name: str, namespace: str) -> None:
    """Deletes the ConfigMap that the reference arena keeps for a job, and no other ConfigMap."""
    label, value = CHART_LABEL
    try:
        labels: dict[str, Any] = (
            api.get(CONFIG_MAPS, name, namespace)["metadata"].get("labels") or {}
        )
        if labels.get(label) == value:
            ObjectWriter(api).apply(DeleteObject(CONFIG_MAPS.ref(name, namespace))).expect()
    except (NotFound, ForbiddenByServer):
        return  # it does no harm: only the reference arena reads it


def sorted_out(results: Any, sources: dict[str, Source]) -> list[Any]:
    """The rows of successful requests; for the others, the reasons are added to `sources`.

    A failure that affects all requests is raised.
    """
    rows: list[Any] = []
    for name, result in results:
        if isinstance(result, list):
            rows += result
            sources.setdefault(name, Source(name))
        elif isinstance(result, NotServed):
            sources[name] = Source(name, SourceState.MISSING, result.message)
        elif isinstance(result, ForbiddenByServer):
            sources[name] = Source(
                name, SourceState.FORBIDDEN, f"forbidden: {result.message}", result.hint
            )
        elif isinstance(result, OutsideError) and not isinstance(
            result, Unauthorized | Unreachable
        ):
            sources[name] = Source(
                name,
                SourceState.FAILING,
                result.message if isinstance(result, ApiFailure) else result.what,
                result.hint,
            )
        else:
            raise result
    return rows


def _value(result: Any) -> Any:
    if isinstance(result, Exception):
        raise result
    return result
