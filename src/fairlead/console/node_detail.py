"""What is there to know about one node? Conditions, taints, one row per GPU, and the pods on them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fairlead.console.envelope import neat, neat_or_null, percent, timestamp
from fairlead.console.gpu_map_cells import idle_seconds
from fairlead.console.gpus_rows import HEALTH_WORDS
from fairlead.console.jobs_rows import memory_allocated
from fairlead.console.nodes_page import ConditionRow, GpuPod, GpuRow, LastXid, NodePod, TaintRow
from fairlead.console.overview import is_idle
from fairlead.model.node import Node
from fairlead.model.occupancy import CardHolder, CardOccupancy, NodeOccupancy
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.rules.cluster_occupancy import ClusterOccupancy, seat_used, seat_utilization
from fairlead.rules.pod_devices import has_gpu

USED_WITHOUT_ALLOCATION_MIB: Final = 512
"""Memory on a card that nobody was given, above which somebody uses it anyway (drivers and daemons keep a little)."""


def condition_rows(node: Node) -> list[ConditionRow]:
    return [
        ConditionRow(type=each.type, status=each.status, reason=each.reason, message=each.message, at=timestamp(each.at))
        for each in node.conditions
    ]


def taint_rows(node: Node) -> list[TaintRow]:
    return [TaintRow(key=each.key, value=each.value, effect=each.effect) for each in node.taints]


def gpu_rows(occupied: NodeOccupancy, job_by_pod: Mapping[str, str], now: float) -> list[GpuRow]:
    """One row per GPU by index. `job_by_pod`: pod key -> `type/name`."""
    return [_gpu_row(card, bool(occupied.unplaced), job_by_pod, now) for card in occupied.cards]


def node_pods(node: Node, snapshot: ClusterSnapshot, occupancy: ClusterOccupancy, job_by_pod: Mapping[str, str]) -> list[NodePod]:
    """Pods that hold GPUs of the node, the largest first."""
    rows = []
    for pod in snapshot.pods_on(node.name):
        if pod.is_holding and has_gpu(pod):
            use = occupancy.use(pod)
            rows.append(
                NodePod(
                    namespace=pod.namespace,
                    name=pod.name,
                    job=job_by_pod.get(pod.key, ""),
                    phase=pod.phase,
                    gpus=neat(use.gpus),
                    gpu_memory_allocated_mib=neat_or_null(memory_allocated(use)),
                    created_at=timestamp(pod.created_at),
                )
            )
    return sorted(rows, key=lambda row: (-row.gpus, row.namespace, row.name))


def _gpu_row(card: CardOccupancy, has_unplaced: bool, job_by_pod: Mapping[str, str], now: float) -> GpuRow:
    reading = card.reading
    return GpuRow(
        index=card.index,
        uuid=card.uuid,
        model=card.model,
        mode=card.mode,
        memory_total_mib=neat_or_null(card.memory_total_mib),
        memory_allocated_mib=neat_or_null(None if has_unplaced and not card.holders else card.memory_allocated_mib),
        memory_used_mib=neat_or_null(reading.memory_used_mib if reading else None),
        util_percent=percent(reading.utilization_ratio if reading else None),
        temperature_c=neat_or_null(reading.temperature_celsius if reading else None),
        power_w=neat_or_null(reading.power_watts if reading else None),
        health=HEALTH_WORDS[card.is_healthy],
        reason=card.reason,
        last_xid=LastXid(code=reading.last_xid, at=timestamp(reading.last_xid_at)) if reading and reading.last_xid else None,
        idle_seconds=idle_seconds(card, now),
        pods=[_gpu_pod(card, holder, job_by_pod) for holder in card.holders],
        mig_instances=[],
        flags=_flags(card, has_unplaced, now),
    )


def _gpu_pod(card: CardOccupancy, holder: CardHolder, job_by_pod: Mapping[str, str]) -> GpuPod:
    return GpuPod(
        namespace=holder.pod.namespace,
        name=holder.pod.name,
        job=job_by_pod.get(holder.pod.key, ""),
        allocated_mib=neat_or_null(holder.memory_granted_mib),
        used_mib=neat_or_null(seat_used(card, holder)),
        util_percent=percent(seat_utilization(card, holder)),
    )


def _flags(card: CardOccupancy, has_unplaced: bool, now: float) -> list[str]:
    used = card.reading.memory_used_mib if card.reading else None
    flags = []
    if used is not None and used > USED_WITHOUT_ALLOCATION_MIB and not card.holders and not has_unplaced:
        flags.append("used-without-allocation")
    if is_idle(card, now):
        flags.append("idle")
    return flags
