"""What does one command read from a live cluster, in as few requests as possible? Blocking, for the CLI (arena contract §6).

What a newcomer gets wrong: nodes are read *before* pods, so a pod that arrives in between is missing or on a node we know, and never
on a node that is not in the answer. Up to five named nodes are fetched by name; more would cost more requests than a list.
"""

from __future__ import annotations

import gc
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

import msgspec

from fairlead.edge.api_failure import Unreachable
from fairlead.edge.api_page import ItemReader
from fairlead.edge.api_request import Selection
from fairlead.edge.kube_blocking import KubeBlocking
from fairlead.edge.resource import CONFIG_MAPS, NODES, PODS, Resource
from fairlead.edge.withheld import withheld_row
from fairlead.errors import Forbidden, NotFound, OutsideError
from fairlead.model.gpu import GpuReading
from fairlead.model.node import Node
from fairlead.model.pod import Pod
from fairlead.model.snapshot import GPU_TELEMETRY, GPU_TOPOLOGIES, WITHHELD_GPUS, ClusterSnapshot, Source
from fairlead.model.topology import GpuTopology
from fairlead.wire import names as spelling
from fairlead.wire.gpu_topology import WireConfigMap, parse_topology
from fairlead.wire.kept_objects import KEPT_KINDS, KeptKind, KeptObjects, WireKept, parse_kept
from fairlead.wire.kube import WireNode, WirePod, parse_node, parse_pod

BY_NAME_MAX: Final = 5
HOLDING: Final = "status.phase!=Succeeded,status.phase!=Failed"
_LOOK_SECONDS: Final = 0.2
log = logging.getLogger("fairlead.kubernetes")

ReadingsQuery = Callable[[], Sequence[GpuReading]]


class ClusterQuery:
    """One cluster for one command. `readings` asks for GPU values (None: nobody to ask); it raises OutsideError when they cannot be had."""

    def __init__(self, api: KubeBlocking, readings: ReadingsQuery | None = None) -> None:
        self._api = api
        self._readings = readings
        self._node_reader = ItemReader(NODES, WireNode, parse_node)
        self._pod_reader = ItemReader(PODS, WirePod, parse_pod)

    def read_nodes(self, names: Sequence[str] = (), *, with_readings: bool = False, with_withheld: bool = False) -> ClusterSnapshot:
        """See `cli.context.ClusterReader`."""
        with _no_collector():
            if names and len(names) <= BY_NAME_MAX:
                nodes = self._nodes_by_name(names)
                pods = [pod for node in nodes for pod in self._pods(f"{HOLDING},spec.nodeName={node.name}")]
            else:
                wanted = set(names)
                nodes = [row for row in self._api.list_all(self._node_reader).rows.values() if not wanted or row.name in wanted]
                pods = [pod for pod in self._pods(f"{HOLDING},spec.nodeName!=") if not wanted or pod.node in wanted]
        topologies, sources = self._topologies(nodes)
        snapshot = ClusterSnapshot(
            nodes=tuple(sorted(nodes, key=lambda node: node.name)),
            pods=tuple(sorted(pods, key=lambda pod: (pod.namespace, pod.name))),
            sources={source.name: source for source in sources},
            taken_at=time.time(),
            topologies=topologies,
            withheld=self._withheld(nodes)[0] if with_withheld else {},
        )
        return self._with_readings(snapshot) if with_readings else snapshot

    def read_all(self) -> ClusterSnapshot:
        """The whole cluster, once, by the reader that services use; it takes what it may have, and `sources` says what is missing."""
        import asyncio

        with _no_promises():
            snapshot = asyncio.run(self._read_once())
        for source in snapshot.sources.values():
            if source.is_unread:
                log.warning("%s cannot be read: %s", source.name, source.message or source.state)
        topologies, sources = self._topologies(snapshot.nodes)
        withheld, unread = self._withheld(snapshot.nodes)
        told = {**snapshot.sources, **{source.name: source for source in (*sources, *unread)}}
        return self._with_readings(msgspec.structs.replace(snapshot, topologies=topologies, sources=told, withheld=withheld))

    def read_objects(self) -> KeptObjects:
        """Kind after kind, nodes before pods. What is not served is not missed."""
        objects: list[dict[str, Any]] = []
        unread: list[Source] = []
        with _no_collector():
            for kind in KEPT_KINDS:
                try:
                    objects += self._objects(kind)
                except Unreachable:
                    raise
                except OutsideError as error:
                    state = "forbidden" if isinstance(error, Forbidden) else "failing"
                    unread.append(Source(f"{kind.plural}.{kind.group}".rstrip("."), state, error.what, error.hint))
        return KeptObjects(objects, unread)

    def _objects(self, kind: KeptKind) -> list[dict[str, Any]]:
        for version in kind.versions:
            api_version = f"{kind.group}/{version}" if kind.group else version
            resource = Resource(kind.group, version, kind.plural, kind=kind.kind)
            reader = ItemReader(resource, WireKept, partial(parse_kept, api_version, kind.kind))
            try:
                return [row for row in self._api.list_all(reader).rows.values() if row is not None]
            except NotFound:
                continue
        return []

    async def _read_once(self) -> ClusterSnapshot:
        import asyncio

        from fairlead.edge.clock import WallClock
        from fairlead.edge.kube_api import KubeApi
        from fairlead.edge.world import KubeCluster

        async with KubeApi(self._api.connection) as api:
            cluster = KubeCluster(api, WallClock())
            reading = asyncio.create_task(cluster.run())
            try:
                while any(source.state == "syncing" for source in cluster.snapshot().sources.values()):
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

    def _topologies(self, nodes: Sequence[Node]) -> tuple[dict[str, GpuTopology], list[Source]]:
        """ConfigMaps only when a node wants one. When we may not read them, its nodes still count as topology nodes, without matrices."""
        labelled = [node.name for node in nodes if node.labels.get(spelling.LABEL_GPU_SCHEDULE) == spelling.GPU_SCHEDULE_TOPOLOGY]
        if not labelled:
            return {}, []
        reader = ItemReader(CONFIG_MAPS, WireConfigMap, _topology_row)
        labels = f"{spelling.LABEL_GPU_SCHEDULE}={spelling.GPU_SCHEDULE_TOPOLOGY}"
        try:
            rows = self._api.list_all(reader, Selection(namespace=spelling.TOPOLOGY_NAMESPACE, labels=labels)).rows
        except Forbidden as error:
            return dict.fromkeys(labelled, GpuTopology()), [Source(GPU_TOPOLOGIES, "forbidden", f"forbidden: {error.what}", error.hint)]
        told = dict(rows.values())
        return {name: told[name] for name in labelled if name in told}, [Source(GPU_TOPOLOGIES)]

    def _withheld(self, nodes: Sequence[Node]) -> tuple[dict[str, tuple[int, ...]], list[Source]]:
        """Only when a node shares GPUs. Whoever may not read ConfigMaps of kube-system does not know of them."""
        shared = {node.name for node in nodes if node.capacity.get(spelling.GPU_MEMORY, 0) > 0}
        if not shared:
            return {}, []
        reader = ItemReader(CONFIG_MAPS, WireConfigMap, withheld_row)
        try:
            rows = self._api.list_all(reader, Selection(namespace=spelling.UNHEALTHY_GPUS_NAMESPACE)).rows
        except Forbidden as error:
            log.debug("GPUs that an operator took out are not known: %s", error.log_line)
            return {}, [Source(WITHHELD_GPUS, "forbidden", error.what, error.hint)]
        return {row.node: tuple(sorted(row.indexes)) for row in rows.values() if row.node in shared and row.indexes}, []

    def _with_readings(self, snapshot: ClusterSnapshot) -> ClusterSnapshot:
        if self._readings is None:
            return snapshot.with_gpus((), Source(GPU_TELEMETRY, "off", "no Prometheus is configured or found"))
        try:
            known = snapshot.node_by_name
            return snapshot.with_gpus([reading for reading in self._readings() if reading.node in known], Source(GPU_TELEMETRY))
        except OutsideError as error:
            from fairlead.edge.gpu_query import NoPrometheus

            state = "missing" if isinstance(error, NoPrometheus) else "failing"
            return snapshot.with_gpus((), Source(GPU_TELEMETRY, state, error.what, error.hint))


def _raise_trouble(snapshot: ClusterSnapshot) -> None:
    """A service waits until the API server comes back; a command says why it cannot be read."""
    for name in ("nodes", "pods"):
        source = snapshot.sources.get(name)
        if source is not None and source.state == "failing":
            raise OutsideError("kubernetes", source.message, source.hint)


def _topology_row(wire: WireConfigMap) -> tuple[str, GpuTopology]:
    labels = wire.metadata.labels or {}
    return labels.get(spelling.LABEL_TOPOLOGY_NODE) or "", parse_topology(wire.data)


@contextmanager
def _no_promises() -> Iterator[None]:
    """A service says of what it cannot read when it tries again; a command does not, so it says for itself what is missing."""

    def is_told(record: logging.LogRecord) -> bool:
        return record.module != "reflector"

    log.addFilter(is_told)
    try:
        yield
    finally:
        log.removeFilter(is_told)


@contextmanager
def _no_collector() -> Iterator[None]:
    """Thousands of rows and no garbage: the cyclic collector would only walk them again and again (design 0001)."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
