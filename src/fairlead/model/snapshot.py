"""The cluster as one immutable value: the input of every rule, page and command.

A bug report contains it. All clusters, real and simulated, make it with `build_snapshot`. A source
that could not be read is not an empty cluster: check `sources`. Indexes are built on first use and
kept in the snapshot, so call its methods (`pods_on`) instead of looping over `pods`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cached_property
from itertools import chain
from operator import attrgetter
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct

from fairlead.model.devices.gpu import GpuReading
from fairlead.model.devices.topology import GpuTopology
from fairlead.model.event import Event
from fairlead.model.jobs.job import Job
from fairlead.model.keys import LABEL_GPU_SCHEDULE
from fairlead.model.moment import Moment
from fairlead.model.node import Node
from fairlead.model.pod import Pod
from fairlead.model.quota.rows import Budget, Namespace, Workload
from fairlead.model.quota.tree import QuotaNode, QuotaTree
from fairlead.model.source import Source, SourceState

Item = TypeVar("Item")

GPU_TELEMETRY: Final = "gpu-telemetry"
GPU_TOPOLOGIES: Final = "gpu-topologies"
GPU_WITHHELD: Final = "gpu-withheld"
"""Names of sources that are no API resource.

They are readings of GPUs, topology ConfigMaps, and the ConfigMaps with which operators take GPUs
out of use.
"""
OPTIONAL: Final = (GPU_TOPOLOGIES, GPU_WITHHELD)
"""Sources that are read only if a node needs them, and that clients without the right do without.
"""
TOPOLOGY_SCHEDULE: Final = "topology"
_by_name = attrgetter("name")
_by_namespace_and_name = attrgetter("namespace", "name")
_by_key = attrgetter("key")
_by_kind_and_key = attrgetter("kind", "api_version", "key")
_by_node_and_index = attrgetter("node", "index")


class ClusterSnapshot(Struct, frozen=True, dict=True):
    """Nodes sorted by name, pods by (namespace, name). `taken_at`: epoch seconds.

    `version` grows with every change. By node name: `topologies`, and `withheld` (indexes of shared
    GPUs that an operator took out of use); `sources` has whether they were read. `quota`: the root
    of `quota_tree`, if it has no malformed part. `workloads`, `budgets`, `namespaces`: the fields
    that quota uses, read if there is a tree. `isolated`: for namespaces where only the jobs of one
    user are visible, the value of that user's label.
    """

    nodes: tuple[Node, ...] = ()
    pods: tuple[Pod, ...] = ()
    jobs: tuple[Job, ...] = ()
    gpus: tuple[GpuReading, ...] = ()
    quota: QuotaNode | None = None
    events: tuple[Event, ...] = ()
    sources: Mapping[str, Source] = {}
    taken_at: Moment = 0.0
    version: int = 0
    topologies: Mapping[str, GpuTopology] = {}
    withheld: Mapping[str, tuple[int, ...]] = {}
    isolated: Mapping[str, str] = {}
    quota_tree: QuotaTree | None = None
    workloads: tuple[Workload, ...] = ()
    budgets: tuple[Budget, ...] = ()
    namespaces: tuple[Namespace, ...] = ()

    @cached_property
    def node_by_name(self) -> Mapping[str, Node]:
        return {node.name: node for node in self.nodes}

    @cached_property
    def _pods_by_node(self) -> Mapping[str, list[Pod]]:
        return _grouped(self.pods, lambda pod: pod.node)

    @cached_property
    def _pods_by_namespace(self) -> Mapping[str, list[Pod]]:
        return _grouped(self.pods, lambda pod: pod.namespace)

    @cached_property
    def _pods_by_owner(self) -> Mapping[str, list[Pod]]:
        by_owner: dict[str, list[Pod]] = {}
        for pod in self.pods:
            for owner in pod.owners:
                by_owner.setdefault(owner.uid, []).append(pod)
        return by_owner

    @cached_property
    def pod_by_key(self) -> Mapping[str, Pod]:
        return {pod.key: pod for pod in self.pods}

    @cached_property
    def _gpus_by_node(self) -> Mapping[str, list[GpuReading]]:
        return _grouped(self.gpus, lambda gpu: gpu.node)

    def pods_on(self, node: str) -> list[Pod]:
        """All pods bound to the node, including finished ones."""
        return self._pods_by_node.get(node, [])

    def pods_in(self, namespace: str) -> list[Pod]:
        return self._pods_by_namespace.get(namespace, [])

    @property
    def pod_namespaces(self) -> Iterable[str]:
        """Namespaces that have pods."""
        return self._pods_by_namespace

    def pods_owned_by(self, uid: str) -> list[Pod]:
        """Pods with an ownerReference to this uid (not those of an owner's owner)."""
        return self._pods_by_owner.get(uid, [])

    @cached_property
    def _label_indexes(self) -> dict[str, dict[tuple[str, str], list[Pod]]]:
        return {}

    def pods_labelled(self, namespace: str, label: str, value: str) -> list[Pod]:
        """Pods of the namespace whose label has this value.

        The index of each label is built once per snapshot.
        """
        index = self._label_indexes.get(label)
        if index is None:
            index = self._label_indexes[label] = {}
            for pod in self.pods:
                if (found := pod.labels.get(label)) is not None:
                    index.setdefault((pod.namespace, found), []).append(pod)
        return index.get((namespace, value), [])

    def gpus_on(self, node: str) -> list[GpuReading]:
        """Readings of the node's GPUs by index; empty if there are none."""
        return self._gpus_by_node.get(node, [])

    def without(self, victims: Iterable[Pod]) -> ClusterSnapshot:
        """The same cluster without these pods: for planning before acting."""
        gone = {pod.uid for pod in victims}
        return msgspec.structs.replace(
            self, pods=tuple(pod for pod in self.pods if pod.uid not in gone)
        )

    @cached_property
    def _by_namespace(self) -> Mapping[str, Mapping[str, list[Any]]]:
        """Field -> namespace -> its rows."""
        return {
            "jobs": _grouped(self.jobs, lambda job: job.namespace),
            "events": _grouped(self.events, lambda event: event.about_namespace),
            "workloads": _grouped(self.workloads, lambda workload: workload.namespace),
            "budgets": _grouped(self.budgets, lambda budget: budget.namespace),
            "namespaces": _grouped(self.namespaces, lambda space: space.name),
        }

    def within(self, namespaces: Collection[str]) -> ClusterSnapshot:
        """The cluster as it is seen from these namespaces: its nodes and sources, and of objects
        with a namespace only theirs. Without readings, which name pods, and without the quota tree.
        """
        names = sorted(namespaces)

        def of(field: str) -> tuple[Any, ...]:
            rows = self._by_namespace[field]
            return tuple(chain.from_iterable(rows.get(name, ()) for name in names))

        return ClusterSnapshot(
            nodes=self.nodes,
            pods=tuple(chain.from_iterable(map(self.pods_in, names))),
            sources=self.sources,
            taken_at=self.taken_at,
            version=self.version,
            topologies=self.topologies,
            withheld=self.withheld,
            isolated={name: user for name, user in self.isolated.items() if name in namespaces},
            jobs=of("jobs"),
            events=of("events"),
            workloads=of("workloads"),
            budgets=of("budgets"),
            namespaces=of("namespaces"),
        )

    def index_for_parts(self) -> None:
        """Makes the indexes that `within` and its parts use, which takes a while."""
        self.within(())
        len(self.node_by_name)

    def with_node_index_of(self, whole: ClusterSnapshot) -> ClusterSnapshot:
        """This snapshot, which has the nodes of `whole`, with the same index of them."""
        vars(self)["node_by_name"] = whole.node_by_name
        return self

    @property
    def main_sources(self) -> Mapping[str, Source]:
        """All sources except the optional ones: without these a page or a metric is incomplete."""
        return {
            name: source
            for name, source in self.sources.items()
            if name not in OPTIONAL and not source.is_optional
        }

    def was_read(self, source: str) -> bool:
        """Whether the source was read, so that what is absent here is absent in the cluster."""
        found = self.sources.get(source)
        return found is not None and found.is_ok

    @property
    def namespace_names(self) -> set[str] | None:
        """The names of all namespaces; None = they were not read."""
        return {space.name for space in self.namespaces} if self.was_read("namespaces") else None

    def as_of(self, moment: Moment, sources: Iterable[Source]) -> ClusterSnapshot:
        """The same cluster, found unchanged at a later time; its indexes stay valid."""
        fresh = msgspec.structs.replace(self, sources=_by_source(sources), taken_at=moment)
        fresh.__dict__.update(self.__dict__)
        return fresh

    def with_gpus(
        self, gpus: Iterable[GpuReading], source: Source | None = None
    ) -> ClusterSnapshot:
        """The same cluster with these GPU readings."""
        sources = {**self.sources, source.name: source} if source else self.sources
        return msgspec.structs.replace(
            self, gpus=tuple(sorted(gpus, key=_by_node_and_index)), sources=sources
        )


def build_snapshot(
    *,
    taken_at: Moment,
    version: int = 0,
    nodes: Iterable[Node] = (),
    pods: Iterable[Pod] = (),
    jobs: Iterable[Job] = (),
    gpus: Iterable[GpuReading] = (),
    quota_tree: QuotaTree | None = None,
    events: Iterable[Event] = (),
    topologies: Iterable[tuple[str, GpuTopology]] = (),
    withheld: Iterable[tuple[str, Collection[int]]] = (),
    isolated: Mapping[str, str] | None = None,
    workloads: Iterable[Workload] = (),
    budgets: Iterable[Budget] = (),
    namespaces: Iterable[Namespace] = (),
    sources: Iterable[Source] = (),
) -> ClusterSnapshot:
    """The snapshot of rows that were read, sorted.

    A tuple is taken as sorted and stays the same object, so that readers can see that it has not
    changed. An optional source without an entry in `sources` was not read: its state is `off`.
    `topologies` may have any node; those of labelled nodes are kept. `withheld` may have any node;
    entries with an index are kept.
    """
    nodes = _in_order(nodes, _by_name)
    labelled = {
        node.name for node in nodes if node.labels.get(LABEL_GPU_SCHEDULE) == TOPOLOGY_SCHEDULE
    }
    return ClusterSnapshot(
        nodes=nodes,
        pods=_in_order(pods, _by_namespace_and_name),
        jobs=_in_order(jobs, _by_key),
        gpus=_in_order(gpus, _by_node_and_index),
        quota=quota_tree.sound_root if quota_tree else None,
        quota_tree=quota_tree,
        events=tuple(events),
        sources=_by_source(sources),
        taken_at=taken_at,
        version=version,
        topologies={name: topology for name, topology in topologies if name in labelled},
        withheld={name: tuple(sorted(indexes)) for name, indexes in withheld if name and indexes},
        isolated=isolated or {},
        workloads=_in_order(workloads, _by_kind_and_key),
        budgets=_in_order(budgets, _by_namespace_and_name),
        namespaces=_in_order(namespaces, _by_name),
    )


def _in_order(rows: Iterable[Item], key: Callable[[Item], object]) -> tuple[Item, ...]:
    return rows if isinstance(rows, tuple) else tuple(sorted(rows, key=key))  # type: ignore[arg-type]


def _by_source(reported: Iterable[Source]) -> dict[str, Source]:
    found = {source.name: source for source in reported}
    return {
        name: Source(name, SourceState.OFF, "not asked for")
        for name in OPTIONAL
        if name not in found
    } | found


def _grouped(items: Iterable[Item], key: Callable[[Item], str]) -> dict[str, list[Item]]:
    groups: dict[str, list[Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups
