"""The cluster as one immutable value: the input of every rule, page and command, and what a bug report attaches.

Two things a newcomer gets wrong: a source that could not be read is not an empty cluster (ask `sources`), and indexes
are built on first use and kept with the snapshot, so ask the snapshot (`pods_on`) instead of looping over `pods`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Final, TypeVar

import msgspec
from msgspec import Struct

from fairlead.model.event import Event
from fairlead.model.gpu import GpuReading
from fairlead.model.job import Job
from fairlead.model.moment import Moment
from fairlead.model.node import Node
from fairlead.model.pod import Pod
from fairlead.model.quota import QuotaNode
from fairlead.model.topology import GpuTopology

Item = TypeVar("Item")

GPU_TELEMETRY: Final = "gpu-telemetry"
GPU_TOPOLOGIES: Final = "gpu-topologies"
WITHHELD_GPUS: Final = "withheld-gpus"
"""Names of sources that are no API resource: readings of GPUs, topology ConfigMaps, and those that take shared GPUs out."""


class Source(Struct, frozen=True, gc=False):
    """How well one input was read. `state`: ok, syncing, missing (no such resource), forbidden, failing (old data stays) or off.

    `good_at`: the last moment its contents were known to be current, epoch seconds; None = never.
    """

    name: str
    state: str = "ok"
    message: str = ""
    hint: str = ""
    good_at: Moment | None = None

    @property
    def is_unread(self) -> bool:
        """Whether it is there and was not read. What a cluster does not have, or nobody wanted, is not missed."""
        return self.state in ("forbidden", "failing", "syncing")


class ClusterSnapshot(Struct, frozen=True, dict=True):
    """Nodes and pods sorted by name and (namespace, name). `taken_at` = epoch seconds; `version` grows with every change.

    By node name: `topologies`, and `withheld` (indexes of shared GPUs that an operator took out). By namespace: `isolated`, where we may
    see the jobs of one person only, its label. Readers that do not ask leave them empty.
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
        """All pods bound to the node, finished ones too."""
        return self._pods_by_node.get(node, [])

    def pods_in(self, namespace: str) -> list[Pod]:
        return self._pods_by_namespace.get(namespace, [])

    def pods_owned_by(self, uid: str) -> list[Pod]:
        """Pods with an ownerReference to this uid (not the owner's owner)."""
        return self._pods_by_owner.get(uid, [])

    @cached_property
    def _label_indexes(self) -> dict[str, dict[tuple[str, str], list[Pod]]]:
        return {}

    def pods_labelled(self, namespace: str, label: str, value: str) -> list[Pod]:
        """Pods of the namespace whose label has this value; the index of each label is built once per snapshot."""
        index = self._label_indexes.get(label)
        if index is None:
            index = self._label_indexes[label] = {}
            for pod in self.pods:
                if (found := pod.labels.get(label)) is not None:
                    index.setdefault((pod.namespace, found), []).append(pod)
        return index.get((namespace, value), [])

    def gpus_on(self, node: str) -> list[GpuReading]:
        """Readings of the node's GPUs by index; empty when nobody reports them."""
        return self._gpus_by_node.get(node, [])

    def without(self, victims: Iterable[Pod]) -> ClusterSnapshot:
        """The same cluster with these pods gone: what a plan asks before it acts."""
        gone = {pod.uid for pod in victims}
        return msgspec.structs.replace(self, pods=tuple(pod for pod in self.pods if pod.uid not in gone))

    def with_gpus(self, gpus: Iterable[GpuReading], source: Source | None = None) -> ClusterSnapshot:
        """The same cluster with these device readings."""
        sources = {**self.sources, source.name: source} if source else self.sources
        ordered = tuple(sorted(gpus, key=lambda gpu: (gpu.node, gpu.index)))
        return msgspec.structs.replace(self, gpus=ordered, sources=sources)


def _grouped(items: Iterable[Item], key: Callable[[Item], str]) -> dict[str, list[Item]]:
    groups: dict[str, list[Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups
