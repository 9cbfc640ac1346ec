"""Kubernetes objects for tests, as an API server sends them, read back through `wire.kube` into a
snapshot.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import msgspec

from fairlead.model.devices.gpu import GpuHolder, GpuReading
from fairlead.model.snapshot import OPTIONAL, ClusterSnapshot, build_snapshot
from fairlead.model.source import Source
from fairlead.wire.gpus.topology import parse_topology
from fairlead.wire.kube.objects import WireNode, WirePod, parse_node, parse_pod

Object = dict[str, Any]


def node(
    name: str,
    ip: str,
    capacity: dict[str, str] | None = None,
    *,
    allocatable: dict[str, str] | None = None,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    ready: str | None = "True",
    unschedulable: bool = False,
) -> Object:
    """A node; with `ready` None it has no Ready condition."""
    return {
        "metadata": {"name": name, "labels": labels, "annotations": annotations},
        "spec": {"unschedulable": unschedulable},
        "status": {
            "capacity": capacity or {},
            "allocatable": {**(capacity or {}), **(allocatable or {})},
            "addresses": [
                {"type": "Hostname", "address": name},
                {"type": "InternalIP", "address": ip},
            ],
            "conditions": [{"type": "Ready", "status": ready}] if ready else None,
        },
    }


def pod(
    name: str,
    on: str,
    limits: dict[str, str],
    *,
    namespace: str = "default",
    annotations: dict[str, str] | None = None,
    phase: str = "Running",
    deleted: bool = False,
) -> Object:
    return {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "annotations": annotations,
            "deletionTimestamp": "2026-01-05T10:00:00Z" if deleted else None,
        },
        "spec": {"nodeName": on, "containers": [{"name": "main", "resources": {"limits": limits}}]},
        "status": {"phase": phase},
    }


def topology_map(
    devices: dict[str, str], links: list[list[str]], bandwidths: list[list[float]]
) -> dict[str, str]:
    """The data of a node's topology ConfigMap."""
    return {
        "devices": json.dumps(devices),
        "linkType": json.dumps(links),
        "bandwidth": json.dumps(bandwidths),
    }


def reading(
    node: str,
    index: int,
    total_gib: float | None,
    used_gib: float | None,
    duty: float | None,
    holders: Iterable[tuple[str, str]] = (),
) -> GpuReading:
    """A device's newest values; None = not reported; `holders` as (namespace, pod)."""
    return GpuReading(
        node=node,
        index=index,
        uuid=f"GPU-{node}-{index}",
        memory_total_mib=None if total_gib is None else total_gib * 1024,
        memory_used_mib=None if used_gib is None else used_gib * 1024,
        utilization_ratio=None if duty is None else duty / 100,
        holders=tuple(GpuHolder(namespace, name) for namespace, name in holders),
    )


def snapshot_of(
    nodes: Iterable[Object],
    pods: Iterable[Object] = (),
    topologies: dict[str, dict[str, str]] | None = None,
    readings: Iterable[GpuReading] = (),
    sources: dict[str, Source] | None = None,
) -> ClusterSnapshot:
    """A snapshot of the objects, read from JSON bytes with the decoder for lists."""
    decoded_nodes = [
        parse_node(msgspec.json.decode(json.dumps(each), type=WireNode)) for each in nodes
    ]
    decoded_pods = [parse_pod(msgspec.json.decode(json.dumps(each), type=WirePod)) for each in pods]
    return build_snapshot(
        nodes=decoded_nodes,
        pods=decoded_pods,
        topologies=((name, parse_topology(data)) for name, data in (topologies or {}).items()),
        gpus=readings,
        sources=({name: Source(name) for name in OPTIONAL} | (sources or {})).values(),
        taken_at=0.0,
    )
