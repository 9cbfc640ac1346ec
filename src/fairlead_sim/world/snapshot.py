"""The simulated cluster as one `ClusterSnapshot`, for commands that run where there is no cluster at all.

The objects go through the same bytes and the same decoders as those of a real API server: a second way into
the model would be a second model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar

import msgspec

from fairlead.kinds.parts.kind import source_of
from fairlead.kinds.registry import KINDS, one_per_resource
from fairlead.kinds.workloads import OWNER_KINDS, workload_of
from fairlead.model.devices.device import DeviceSample
from fairlead.model.devices.gpu import GpuHolder, GpuReading
from fairlead.model.jobs.job import Job
from fairlead.model.quota.rows import Workload
from fairlead.model.quota.tree import QuotaTree
from fairlead.model.snapshot import GPU_TELEMETRY, OPTIONAL, ClusterSnapshot, build_snapshot
from fairlead.model.source import Source
from fairlead.wire import names
from fairlead.wire.gpus.topology import WireConfigMap, parse_topology_map, parse_withheld_map
from fairlead.wire.kube.budgets import WireBudget, WireNamespace, parse_budget, parse_namespace
from fairlead.wire.kube.kept_objects import KEPT_KINDS, kept_object
from fairlead.wire.kube.objects import WireEvent, WireNode, WirePod, parse_event, parse_node, parse_pod
from fairlead.wire.quota.elastic_quota import WireQuotaTree, parse_quota_tree
from fairlead_sim.objects.resources import CONFIG_MAPS, EVENTS, NODES, PODS
from fairlead_sim.schema.resource import ResourceKind
from fairlead_sim.world.world import World

Row = TypeVar("Row")
_SYSTEM: Final = names.UNHEALTHY_GPUS_NAMESPACE
"""Where both kinds of ConfigMaps about GPUs are."""
_OF_QUOTA: Final = ("namespaces", "poddisruptionbudgets", *(kind.name for kind in OWNER_KINDS))
"""Sources that are read where there is a quota tree."""


def take_snapshot(world: World) -> ClusterSnapshot:
    """Everything the model knows of the world at its present instant, GPU readings included."""
    now = world.clock.now()
    kinds = [source_of(kind) for kind in one_per_resource(KINDS)]
    maps = [wire for wire in _rows(world, CONFIG_MAPS, WireConfigMap, _itself) if wire.metadata.namespace == _SYSTEM]
    withheld = [parse_withheld_map(wire) for wire in maps]
    tree, jobs = _quota_tree(world), _jobs(world)
    return build_snapshot(
        nodes=_rows(world, NODES, WireNode, parse_node),
        pods=_rows(world, PODS, WirePod, parse_pod),
        jobs=jobs,
        gpus=(reading_of(sample) for sample in world.devices.sample()),
        quota_tree=tree,
        workloads=[*_owners(world), *map(workload_of, jobs)] if tree else (),
        budgets=(parse_budget(wire) for wire in _of_resource(world, "policy", "poddisruptionbudgets", WireBudget)) if tree else (),
        namespaces=(parse_namespace(wire) for wire in _of_resource(world, "", "namespaces", WireNamespace)) if tree else (),
        events=_rows(world, EVENTS, WireEvent, parse_event),
        topologies=(parse_topology_map(wire) for wire in maps if (wire.metadata.labels or {}).get(names.LABEL_GPU_SCHEDULE)),
        withheld=((row.node, row.indexes) for row in withheld),
        sources=[
            *(Source(name, good_at=now) for name in ("nodes", "pods", *kinds, names.QUOTA_PLURAL, "events", GPU_TELEMETRY, *OPTIONAL)),
            *(Source(name, good_at=now, is_optional=True) for name in (_OF_QUOTA if tree else ())),
        ],
        taken_at=now,
    )


def take_objects(world: World) -> list[dict[str, Any]]:
    """What may be saved of the world's objects, for a world that goes on from them."""
    refs = [ref for kind in KEPT_KINDS for ref in world.cluster.kinds() if (ref.group, ref.kind) == (kind.group, kind.kind)]
    return [kept for ref in refs for obj in world.cluster.scan(ref) if (kept := kept_object(obj)) is not None]


def reading_of(sample: DeviceSample) -> GpuReading:
    """The part of a device's sample that boards and tables show. A card that is off the bus has no values,
    only its fault."""
    fields = sample.fields
    total, percent = fields.get("DCGM_FI_DEV_FB_TOTAL"), fields.get("DCGM_FI_DEV_GPU_UTIL")
    newest = max(sample.xids, key=lambda event: event.last_at, default=None)
    return GpuReading(
        node=sample.node,
        index=sample.index,
        uuid=sample.uuid,
        model=sample.model,
        memory_total_mib=total,
        memory_used_mib=fields.get("DCGM_FI_DEV_FB_USED"),
        utilization_ratio=None if percent is None else percent / 100,
        temperature_celsius=fields.get("DCGM_FI_DEV_GPU_TEMP"),
        power_watts=fields.get("DCGM_FI_DEV_POWER_USAGE"),
        healthy=sample.healthy,
        last_xid=newest.xid if newest else None,
        last_xid_at=newest.last_at if newest else None,
        driver_version=sample.driver_version,
        read_at=sample.sampled_at,
        holders=tuple(
            GpuHolder(
                namespace=process.namespace,
                pod=process.pod,
                container=process.container,
                mode=process.allocate_mode,
                memory_used_mib=process.memory_used_mib,
                memory_limit_mib=process.memory_limit_mib,
                utilization_ratio=process.sm_percent / 100,
            )
            for process in sample.processes
        ),
    )


def _quota_tree(world: World) -> QuotaTree | None:
    trees = (parse_quota_tree(wire) for wire in _of_resource(world, names.QUOTA_GROUP, names.QUOTA_PLURAL, WireQuotaTree))
    wanted = (names.QUOTA_TREE_NAMESPACE, names.QUOTA_TREE_NAME)
    return next((tree for tree in trees if (tree.namespace, tree.name) == wanted), None)


def _owners(world: World) -> Iterator[Workload]:
    for kind in OWNER_KINDS:
        for wire in _of_resource(world, kind.group, kind.plural, kind.wire):
            yield kind.parse(wire, kind.versions[0])


def _jobs(world: World) -> list[Job]:
    return [
        kind.parse(wire, version)
        for kind in one_per_resource(KINDS)
        for version in kind.VERSIONS[:1]
        for wire in _of_resource(world, kind.GROUP, kind.PLURAL, kind.WIRE)
    ]


def _of_resource(world: World, group: str, plural: str, wire: type[Row]) -> list[Row]:
    found = [ref for ref in world.cluster.kinds() if (ref.group, ref.plural) == (group, plural)]
    return [row for ref in found for row in _rows(world, ref, wire, _itself)]


def _rows(world: World, ref: ResourceKind, wire: type[Any], parse: Callable[[Any], Row]) -> list[Row]:
    """Objects through their bytes, sorted by namespace and name."""
    decoder = msgspec.json.Decoder(wire)
    return [parse(decoder.decode(msgspec.json.encode(item))) for item in world.cluster.scan(ref)]


def _itself(wire: Row) -> Row:
    return wire
