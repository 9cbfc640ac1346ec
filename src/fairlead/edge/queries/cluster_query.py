"""Reads a live cluster for one command, in as few requests as possible.

Specification: docs/spec/arena-cli.md#requests.

Blocking, for the CLI. Nodes are read before pods, so that a pod that arrives in between is absent
or on a known node, never on a node that is not in the answer. Up to five named nodes are read by
name; for more, a list takes fewer requests.
"""

from __future__ import annotations

import gc
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from fairlead.edge.kube.api_failure import Unreachable
from fairlead.edge.kube.api_page import ItemReader
from fairlead.edge.kube.api_request import Selection
from fairlead.edge.kube.kube_blocking import KubeBlocking, in_parallel
from fairlead.edge.kube.resource import CONFIG_MAPS, NODES, PODS, Resource
from fairlead.errors import Forbidden, NotFound, OutsideError
from fairlead.model.devices.gpu import GpuReading
from fairlead.model.devices.topology import GpuTopology
from fairlead.model.node import Node
from fairlead.model.pod import Pod
from fairlead.model.snapshot import (
    GPU_TELEMETRY,
    GPU_TOPOLOGIES,
    GPU_WITHHELD,
    ClusterSnapshot,
    build_snapshot,
)
from fairlead.model.source import Source, SourceState
from fairlead.wire import names as spelling
from fairlead.wire.gpus.topology import WireConfigMap, parse_topology_map, parse_withheld_map
from fairlead.wire.kube.forms import JsonForm
from fairlead.wire.kube.kept_objects import KEPT_KINDS, KeptKind, KeptObjects, WireKept, parse_kept
from fairlead.wire.kube.objects import NODE_FORM, POD_FORM, WireNode, parse_node

BY_NAME_MAX: Final = 5
HOLDING: Final = "status.phase!=Succeeded,status.phase!=Failed"
_LOOK_SECONDS: Final = 0.2
log = logging.getLogger("fairlead.kubernetes")

if TYPE_CHECKING:
    from fairlead.edge.kube.api_discovery import Discovery
    from fairlead.edge.kube.follow.followed_kind import FollowedKind

Row = TypeVar("Row")
ReadingsQuery = Callable[[], Sequence[GpuReading]]


class ClusterQuery:
    """One cluster for one command.

    `readings` returns GPU values (None: there is no source); it raises OutsideError when they
    cannot be read.
    """

    def __init__(self, api: KubeBlocking, readings: ReadingsQuery | None = None) -> None:
        self._api = api
        self._readings = readings
        self._node_reader = ItemReader(NODES, NODE_FORM)
        self._pod_reader = ItemReader(PODS, POD_FORM)

    def read_nodes(
        self, names: Sequence[str] = (), *, with_readings: bool = False, with_withheld: bool = False
    ) -> ClusterSnapshot:
        """See `cli.context.ClusterReader`."""
        with _no_collector():
            if names and len(names) <= BY_NAME_MAX:
                nodes = self._nodes_by_name(names)
                pods = [
                    pod
                    for node in nodes
                    for pod in self._pods(f"{HOLDING},spec.nodeName={node.name}")
                ]
            else:
                wanted = set(names)
                nodes = [
                    row
                    for row in self._api.list_all(self._node_reader).rows.values()
                    if not wanted or row.name in wanted
                ]
                pods = [
                    pod
                    for pod in self._pods(f"{HOLDING},spec.nodeName!=")
                    if not wanted or pod.node in wanted
                ]
        read = [Source("nodes"), Source("pods")]
        snapshot = build_snapshot(
            nodes=nodes,
            pods=pods,
            topologies=self._topologies(nodes, read),
            withheld=self._withheld(nodes, read) if with_withheld else (),
            sources=read,
            taken_at=time.time(),
        )
        return self._with_readings(snapshot) if with_readings else snapshot

    def read_all(self, *, with_warnings: bool = True) -> ClusterSnapshot:
        """The whole cluster, read once with the services' reader.

        `sources` has what could not be read; `with_warnings` it is logged, too.
        """
        import asyncio

        with _without_retry_logs():
            found = asyncio.run(self._read_once())
        for source in found.sources.values():
            if source.is_unread and with_warnings:
                log.warning("%s cannot be read: %s", source.name, source.message or source.state)
        read = list(found.sources.values())
        snapshot = build_snapshot(
            nodes=found.nodes,
            pods=found.pods,
            jobs=found.jobs,
            quota_tree=found.quota_tree,
            workloads=found.workloads,
            budgets=found.budgets,
            namespaces=found.namespaces,
            events=found.events,
            topologies=self._topologies(found.nodes, read),
            withheld=self._withheld(found.nodes, read),
            sources=read,
            taken_at=found.taken_at,
            version=found.version,
        )
        return self._with_readings(snapshot)

    def read_namespace(self, namespace: str) -> ClusterSnapshot:
        """See `cli.context.ClusterReader`."""
        from fairlead.edge.kube.follow.followed_kind import (
            EVENT_SUBJECT,
            job_subject,
            workload_subject,
        )
        from fairlead.kinds.registry import KINDS, one_per_resource
        from fairlead.kinds.workloads import OWNER_KINDS, workload_of

        pods = self._api.list_all(self._pod_reader, Selection(namespace)).rows.values()
        job_kinds = [job_subject(kind) for kind in one_per_resource(KINDS)]
        owner_kinds = [workload_subject(kind) for kind in OWNER_KINDS]
        kinds: list[FollowedKind[Any]] = [*job_kinds, *owner_kinds]
        served = self._api.discovery({each.resource.group for each in kinds})
        sources = {PODS.plural: Source(PODS.plural)}
        jobs, owners, events = (
            self._listed(each, served, namespace, sources)
            for each in (job_kinds, owner_kinds, [EVENT_SUBJECT])
        )
        return build_snapshot(
            pods=pods,
            jobs=jobs,
            workloads=(*owners, *map(workload_of, jobs)),
            events=events,
            sources=sources.values(),
            taken_at=time.time(),
        )

    def _listed(
        self,
        kinds: Sequence[FollowedKind[Any]],
        served: Discovery,
        namespace: str,
        sources: dict[str, Source],
    ) -> list[Any]:
        """The rows of all kinds that are served; how each was read is added to `sources`."""
        from fairlead.edge.queries.job_query import sorted_out

        places = [
            (each, each.resource if each.versions is None else each.served(served))
            for each in kinds
        ]
        there = [(each, found) for each, found in places if found is not None]

        def rows(kind: FollowedKind[Any], found: Resource) -> list[Any]:
            selection = Selection(namespace, fields=kind.selection.fields)
            return list(self._api.list_all(kind.reader(found), selection).rows.values())

        answers = in_parallel([partial(rows, *each) for each in there])
        return sorted_out(zip((kind.name for kind, _ in there), answers, strict=True), sources)

    def read_objects(self) -> KeptObjects:
        """Kind by kind, nodes before pods. A kind that is not served is skipped."""
        objects: list[dict[str, Any]] = []
        unread: list[Source] = []
        with _no_collector():
            for kind in KEPT_KINDS:
                try:
                    objects += self._objects(kind)
                except Unreachable:
                    raise
                except OutsideError as error:
                    state = (
                        SourceState.FORBIDDEN
                        if isinstance(error, Forbidden)
                        else SourceState.FAILING
                    )
                    unread.append(
                        Source(
                            f"{kind.plural}.{kind.group}".rstrip("."), state, error.what, error.hint
                        )
                    )
        return KeptObjects(objects, unread)

    def _objects(self, kind: KeptKind) -> list[dict[str, Any]]:
        for version in kind.versions:
            api_version = f"{kind.group}/{version}" if kind.group else version
            resource = Resource(kind.group, version, kind.plural, kind=kind.kind)
            reader = ItemReader(
                resource, JsonForm(WireKept, partial(parse_kept, api_version, kind.kind))
            )
            try:
                return [row for row in self._api.list_all(reader).rows.values() if row is not None]
            except NotFound:
                continue
        return []

    async def _read_once(self) -> ClusterSnapshot:
        import asyncio

        from fairlead.edge.kube.cluster import KubeCluster
        from fairlead.edge.kube.kube_api import KubeApi

        async with KubeApi(self._api.connection) as api:
            cluster = KubeCluster(api, api.clock)
            reading = asyncio.create_task(cluster.run())
            try:
                while any(
                    source.state == SourceState.SYNCING
                    for source in cluster.snapshot().sources.values()
                ):
                    await cluster.wait_changed(cluster.version, _LOOK_SECONDS)
                    _raise_trouble(cluster.snapshot())
                return cluster.snapshot()
            finally:
                reading.cancel()
                await asyncio.gather(reading, return_exceptions=True)

    def describe(self) -> str:
        return f"the cluster at {self._api.connection.server}"

    def _nodes_by_name(self, names: Sequence[str]) -> list[Node]:
        found = []
        for name in names:
            try:
                found.append(parse_node(self._api.get(NODES, name, type=WireNode)))
            except NotFound:
                continue
        return found

    def _pods(self, fields: str) -> list[Pod]:
        return list(self._api.list_all(self._pod_reader, Selection(fields=fields)).rows.values())

    def _topologies(
        self, nodes: Sequence[Node], read: list[Source]
    ) -> list[tuple[str, GpuTopology]]:
        """Topologies by node name, read only if a node has one.

        The result of reading is added to `read`.
        """
        wanted = any(
            node.labels.get(spelling.LABEL_GPU_SCHEDULE) == spelling.GPU_SCHEDULE_TOPOLOGY
            for node in nodes
        )
        labels = f"{spelling.LABEL_GPU_SCHEDULE}={spelling.GPU_SCHEDULE_TOPOLOGY}"
        selection = Selection(namespace=spelling.TOPOLOGY_NAMESPACE, labels=labels)
        return (
            self._maps(GPU_TOPOLOGIES, parse_topology_map, selection, read)
            if wanted
            else _none(GPU_TOPOLOGIES, read)
        )

    def _withheld(
        self, nodes: Sequence[Node], read: list[Source]
    ) -> list[tuple[str, frozenset[int]]]:
        """Withheld GPUs of nodes that share GPUs, read only if there are such nodes.

        The result is added to `read`.
        """
        shared = {node.name for node in nodes if node.capacity.get(spelling.GPU_MEMORY, 0) > 0}
        if not shared:
            return _none(GPU_WITHHELD, read)
        rows = self._maps(
            GPU_WITHHELD,
            parse_withheld_map,
            Selection(namespace=spelling.UNHEALTHY_GPUS_NAMESPACE),
            read,
        )
        return [(row.node, row.indexes) for row in rows if row.node in shared]

    def _maps(
        self,
        source: str,
        parse: Callable[[WireConfigMap], Row],
        selection: Selection,
        read: list[Source],
    ) -> list[Row]:
        try:
            rows = list(
                self._api.list_all(
                    ItemReader(CONFIG_MAPS, JsonForm(WireConfigMap, parse)), selection
                ).rows.values()
            )
        except Forbidden as error:
            read.append(
                Source(source, SourceState.FORBIDDEN, f"forbidden: {error.what}", error.hint)
            )
            return []
        read.append(Source(source))
        return rows

    def _with_readings(self, snapshot: ClusterSnapshot) -> ClusterSnapshot:
        if self._readings is None:
            return snapshot.with_gpus(
                (), Source(GPU_TELEMETRY, SourceState.OFF, "no Prometheus is configured or found")
            )
        try:
            known = snapshot.node_by_name
            return snapshot.with_gpus(
                [reading for reading in self._readings() if reading.node in known],
                Source(GPU_TELEMETRY),
            )
        except OutsideError as error:
            from fairlead.edge.queries.gpu_query import NoPrometheus

            state = SourceState.MISSING if isinstance(error, NoPrometheus) else SourceState.FAILING
            return snapshot.with_gpus((), Source(GPU_TELEMETRY, state, error.what, error.hint))


def _raise_trouble(snapshot: ClusterSnapshot) -> None:
    """Raises the failure: a service waits for the API server, but a command reports it."""
    for name in ("nodes", "pods"):
        source = snapshot.sources.get(name)
        if source is not None and source.state == SourceState.FAILING:
            raise OutsideError("kubernetes", source.message, source.hint)


def _none(source: str, read: list[Source]) -> list[Any]:
    """No node needs the source, so nothing is missing."""
    read.append(Source(source))
    return []


@contextmanager
def _without_retry_logs() -> Iterator[None]:
    """Without log messages about retries: a service will retry what it cannot read, but a
    command will not, and reports itself what is missing.
    """

    def is_shown(record: logging.LogRecord) -> bool:
        return record.module != "reflector"

    log.addFilter(is_shown)
    try:
        yield
    finally:
        log.removeFilter(is_shown)


@contextmanager
def _no_collector() -> Iterator[None]:
    """Turns the garbage collector off: it would only walk thousands of rows (design 0001)."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
