"""The simulated cluster as one `ClusterSnapshot`, for commands that run without a cluster.

The objects go through the same bytes and the same decoders as those of a real API server: a second
way into the model would be a second model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Final, Protocol, TypeVar

import msgspec
from msgspec.structs import replace

from fairlead.kinds.parts.kind import source_of
from fairlead.kinds.registry import KINDS, one_per_resource
from fairlead.kinds.workloads import OWNER_KINDS, workload_of
from fairlead.model.devices.device import (
    LEAST_STALE_SECONDS,
    DeviceProcess,
    DeviceSample,
    MigInstance,
)
from fairlead.model.devices.gpu import GpuHolder, GpuInstance, GpuReading, instances_utilization
from fairlead.model.jobs.job import Job
from fairlead.model.quota.rows import Workload
from fairlead.model.quota.tree import QuotaTree
from fairlead.model.snapshot import GPU_TELEMETRY, OPTIONAL, ClusterSnapshot, build_snapshot
from fairlead.model.source import Source
from fairlead.wire import names
from fairlead.wire.gpus.topology import WireConfigMap, parse_topology_map, parse_withheld_map
from fairlead.wire.kube.budgets import WireBudget, WireNamespace, parse_budget, parse_namespace
from fairlead.wire.kube.kept_objects import KEPT_KINDS, kept_object
from fairlead.wire.kube.objects import (
    WireEvent,
    WireNode,
    WirePod,
    parse_event,
    parse_node,
    parse_pod,
)
from fairlead.wire.quota.elastic_quota import WireQuotaTree, parse_quota_tree
from fairlead_sim.objects.resources import CONFIG_MAPS, EVENTS, NODES, PODS
from fairlead_sim.schema.resource import ResourceKind
from fairlead_sim.world.world import World

Row = TypeVar("Row")
_MIB: Final = 1 << 20
_SYSTEM: Final = names.UNHEALTHY_GPUS_NAMESPACE
"""Where both kinds of ConfigMaps about GPUs are."""
_OF_QUOTA: Final = ("namespaces", "poddisruptionbudgets", *(kind.name for kind in OWNER_KINDS))
"""Sources that are read where there is a quota tree."""


class ReadObjects(Protocol):
    """The objects of a cluster by kind: a `StoredCluster`, or what was kept of one."""

    def kinds(self) -> Iterable[ResourceKind]: ...

    def scan(self, ref: ResourceKind, /) -> Iterable[dict[str, Any]]: ...


class WorldReader:
    """Reads the objects of a world again and again.

    What has not changed since the last time is not read anew.
    """

    def __init__(self, objects: ReadObjects) -> None:
        self.objects = objects
        self._known: dict[tuple[ResourceKind, type], dict[str, tuple[str, Any]]] = {}

    def rows(self, ref: ResourceKind, wire: type[Any], parse: Callable[[Any], Row]) -> list[Row]:
        """Objects through their bytes, sorted by namespace and name.

        A kind always has the same parser.
        """
        decoder, known = msgspec.json.Decoder(wire), self._known.get((ref, wire), {})
        found: dict[str, tuple[str, Row]] = {}
        for item in self.objects.scan(ref):
            uid, version = item["metadata"]["uid"], item["metadata"]["resourceVersion"]
            row = known.get(uid)
            if row is None or row[0] != version:
                row = version, parse(decoder.decode(msgspec.json.encode(item)))
            found[uid] = row
        self._known[ref, wire] = found
        return [row for _, row in found.values()]

    def of_resource(
        self, group: str, plural: str, wire: type[Any], parse: Callable[[Any], Row]
    ) -> list[Row]:
        found = [ref for ref in self.objects.kinds() if (ref.group, ref.plural) == (group, plural)]
        return [row for ref in found for row in self.rows(ref, wire, parse)]


def take_snapshot(world: World, reader: WorldReader | None = None) -> ClusterSnapshot:
    """Everything the model knows of the world at its present instant, GPU readings included.

    `reader`: of this world, where more snapshots of it are taken.
    """
    samples = world.devices.sample(is_brief=True)
    return snapshot_of(reader or WorldReader(world.cluster), samples, world.clock.now())


def snapshot_of(
    reader: WorldReader, samples: Iterable[DeviceSample], now: float
) -> ClusterSnapshot:
    """The snapshot of these objects and samples of cards, taken `now` (epoch seconds)."""
    kinds = [source_of(kind) for kind in one_per_resource(KINDS)]
    maps = [
        wire
        for wire in reader.rows(CONFIG_MAPS, WireConfigMap, _itself)
        if wire.metadata.namespace == _SYSTEM
    ]
    withheld = [parse_withheld_map(wire) for wire in maps]
    tree, jobs = _quota_tree(reader), _jobs(reader)
    return build_snapshot(
        nodes=reader.rows(NODES, WireNode, parse_node),
        pods=reader.rows(PODS, WirePod, parse_pod),
        jobs=jobs,
        gpus=(reading_of(sample, now) for sample in samples),
        quota_tree=tree,
        workloads=[*_owners(reader), *map(workload_of, jobs)] if tree else (),
        budgets=reader.of_resource("policy", "poddisruptionbudgets", WireBudget, parse_budget)
        if tree
        else (),
        namespaces=reader.of_resource("", "namespaces", WireNamespace, parse_namespace)
        if tree
        else (),
        events=reader.rows(EVENTS, WireEvent, parse_event),
        topologies=(
            parse_topology_map(wire)
            for wire in maps
            if (wire.metadata.labels or {}).get(names.LABEL_GPU_SCHEDULE)
        ),
        withheld=((row.node, row.indexes) for row in withheld),
        sources=[
            *(
                Source(name, good_at=now)
                for name in (
                    "nodes",
                    "pods",
                    *kinds,
                    names.QUOTA_PLURAL,
                    "events",
                    GPU_TELEMETRY,
                    *OPTIONAL,
                )
            ),
            *(Source(name, good_at=now, is_optional=True) for name in (_OF_QUOTA if tree else ())),
        ],
        taken_at=now,
    )


def take_objects(world: World) -> list[dict[str, Any]]:
    """What may be saved of the world's objects, for a world that goes on from them."""
    refs = [
        ref
        for kind in KEPT_KINDS
        for ref in world.cluster.kinds()
        if (ref.group, ref.kind) == (kind.group, kind.kind)
    ]
    return [
        kept
        for ref in refs
        for obj in world.cluster.scan(ref)
        if (kept := kept_object(obj)) is not None
    ]


def reading_of(sample: DeviceSample, now: float) -> GpuReading:
    """The part of a device's sample that boards and tables show, as reported `now`.

    A card that is off the bus has no values, only its fault; a card that hangs soon has none
    either, only its holders. A process without a grant is no holder.
    """
    is_fresh = now - sample.sampled_at <= LEAST_STALE_SECONDS
    fields = sample.fields if is_fresh else {}
    total, percent = fields.get("DCGM_FI_DEV_FB_TOTAL"), fields.get("DCGM_FI_DEV_GPU_UTIL")
    used = fields.get("DCGM_FI_DEV_FB_USED")
    instances = tuple(_instance(each, is_fresh=is_fresh) for each in sample.instances)
    if instances and fields:  # as exporters' pages show a divided card: its instances together
        total, used = (
            sum(each.memory_total_mib or 0 for each in instances),
            sum(each.memory_used_mib or 0 for each in instances),
        )
    newest = max(sample.xids, key=lambda event: event.last_at, default=None)
    return GpuReading(
        node=sample.node,
        index=sample.index,
        uuid=sample.uuid,
        model=sample.model,
        memory_total_mib=total,
        memory_used_mib=used,
        utilization_ratio=instances_utilization(instances) if percent is None else percent / 100,
        temperature_celsius=fields.get("DCGM_FI_DEV_GPU_TEMP"),
        power_watts=fields.get("DCGM_FI_DEV_POWER_USAGE"),
        healthy=sample.healthy,
        last_xid=newest.xid if newest else None,
        last_xid_at=newest.last_at if newest else None,
        driver_version=sample.driver_version,
        read_at=now,
        holders=(
            *(_holder(process, is_fresh=is_fresh) for process in sample.processes if process.pod),
            *(holder for instance in instances for holder in instance.holders),
        ),
        instances=instances,
    )


def _instance(instance: MigInstance, *, is_fresh: bool) -> GpuInstance:
    fields = instance.fields if is_fresh else {}
    busy = fields.get("DCGM_FI_PROF_GR_ENGINE_ACTIVE")
    held = (_holder(process, is_fresh=is_fresh) for process in instance.processes if process.pod)
    return GpuInstance(
        id=instance.gpu_instance,
        profile=instance.profile,
        memory_total_mib=fields.get("DCGM_FI_DEV_FB_TOTAL"),
        memory_used_mib=fields.get("DCGM_FI_DEV_FB_USED"),
        utilization_ratio=busy,
        holders=tuple(replace(holder, utilization_ratio=busy) for holder in held),
    )


def _holder(process: DeviceProcess, *, is_fresh: bool) -> GpuHolder:
    return GpuHolder(
        namespace=process.namespace,
        pod=process.pod,
        container=process.container,
        mode=process.allocate_mode,
        memory_used_mib=process.memory_used_bytes / _MIB
        if is_fresh and process.memory_used_bytes is not None
        else None,
        memory_limit_mib=None
        if process.memory_limit_bytes is None
        else process.memory_limit_bytes / _MIB,
        utilization_ratio=process.sm_percent / 100
        if is_fresh and process.sm_percent is not None
        else None,
    )


def _quota_tree(reader: WorldReader) -> QuotaTree | None:
    trees = reader.of_resource(
        names.QUOTA_GROUP, names.QUOTA_PLURAL, WireQuotaTree, parse_quota_tree
    )
    wanted = (names.QUOTA_TREE_NAMESPACE, names.QUOTA_TREE_NAME)
    return next((tree for tree in trees if (tree.namespace, tree.name) == wanted), None)


def _owners(reader: WorldReader) -> Iterator[Workload]:
    for kind in OWNER_KINDS:
        yield from reader.of_resource(
            kind.group, kind.plural, kind.wire, partial(_parse_as, kind.parse, kind.versions[0])
        )


def _jobs(reader: WorldReader) -> list[Job]:
    return [
        job
        for kind in one_per_resource(KINDS)
        for version in kind.VERSIONS[:1]
        for job in reader.of_resource(
            kind.GROUP, kind.PLURAL, kind.WIRE, partial(_parse_as, kind.parse, version)
        )
    ]


def _parse_as(parse: Callable[[Any, str], Row], version: str, wire: Any) -> Row:
    return parse(wire, version)


def _itself(wire: Row) -> Row:
    return wire
