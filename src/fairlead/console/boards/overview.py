"""The Cluster board: its eight panels, and the lists of starved leaves, broken GPUs and warnings.

`idle_cards` defines `idle`; a free GPU is not idle.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

from fairlead.console.boards.gpu_map_cells import withheld_gpus
from fairlead.console.boards.quota.usage_rows import starved_paths
from fairlead.console.pages.cluster import (
    Consumer,
    FaultyGpu,
    GpuCounts,
    GpuMemory,
    GpuNodeCounts,
    JobCounts,
    RecentWarning,
    StarvedLeaf,
)
from fairlead.console.pages.envelope import (
    Sentence,
    counted,
    gpu_count,
    neat,
    neat_or_null,
    timestamp,
)
from fairlead.console.pages.jobs import JobRow
from fairlead.console.pages.quota import QuotaRow
from fairlead.model.event import Event
from fairlead.model.occupancy import GpuTotals, NodeOccupancy
from fairlead.model.pod import Pod
from fairlead.model.resources import is_gpu_resource
from fairlead.rules.holding.occupancy import ClusterOccupancy

TOP_CONSUMERS: Final = 10
LIST_MAX: Final = 20
_WARNING_SECONDS: Final = 3600.0


def cluster_sentence(totals: GpuTotals, idle: float) -> Sentence:
    """Allocated, idle and unhealthy GPUs in one sentence.

    >>> cluster_sentence(GpuTotals(gpus=48, gpus_allocated=38, gpus_unhealthy=1), 7).text
    '38 of 48 GPUs allocated, 7 of them idle for over an hour; 1 GPU unhealthy.'
    """
    if not totals.gpus:
        return Sentence("cluster-none", {}, "This cluster has no GPUs.")
    allocated, idle = gpu_count(totals.gpus_allocated), gpu_count(idle)
    values = {
        "allocated": allocated,
        "total": totals.gpus,
        "idle": idle,
        "unhealthy": totals.gpus_unhealthy,
    }
    code, text = "cluster", f"{allocated:g} of {counted(totals.gpus, 'GPU')} allocated"
    if idle:
        code += "-idle"
        text += f", {idle:g} of them idle for over an hour"
    if totals.gpus_unhealthy:
        code += "-unhealthy"
        text += f"; {counted(totals.gpus_unhealthy, 'GPU')} unhealthy"
    return Sentence(code, dict(values), text + ".")


def gpu_node_counts(totals: GpuTotals) -> GpuNodeCounts:
    return GpuNodeCounts(
        total=totals.nodes,
        allocated=totals.nodes_allocated,
        unhealthy=totals.nodes_unhealthy,
        faulty=totals.nodes_faulty,
    )


def gpu_counts(totals: GpuTotals) -> GpuCounts:
    return GpuCounts(
        total=totals.gpus, allocated=neat(totals.gpus_allocated), unhealthy=totals.gpus_unhealthy
    )


def gpu_memory(totals: GpuTotals) -> GpuMemory:
    return GpuMemory(
        total_mib=neat_or_null(totals.memory_total_mib),
        allocated_mib=neat_or_null(totals.memory_allocated_mib),
        used_mib=neat_or_null(totals.memory_used_mib),
        used_of_mib=neat_or_null(totals.memory_used_of_mib),
    )


def job_counts(jobs: Sequence[JobRow]) -> JobCounts:
    words = [job.status for job in jobs]
    return JobCounts(
        running=words.count("Running"),
        pending=words.count("Pending"),
        succeeded=words.count("Succeeded"),
        failed=words.count("Failed"),
    )


def held_by_namespace(pods: Iterable[Pod], occupancy: ClusterOccupancy) -> dict[str, list[float]]:
    """GPUs and MiB that each namespace holds. `pods`: those that ask for GPUs."""
    held: dict[str, list[float]] = {}
    for pod in pods:
        if pod.is_holding:
            use = occupancy.use(pod)
            sums = held.setdefault(pod.namespace, [0.0, 0.0])
            sums[0] += use.gpus
            sums[1] += use.memory_allocated_mib or 0.0
    return held


def top_consumers(held: Mapping[str, Sequence[float]], jobs: Iterable[JobRow]) -> list[Consumer]:
    """The namespaces that hold the most GPUs."""
    running: dict[str, int] = {}
    for job in jobs:
        if job.gpus_allocated:
            running[job.namespace] = running.get(job.namespace, 0) + 1
    top = heapq.nsmallest(TOP_CONSUMERS, held.items(), key=lambda item: (-item[1][0], item[0]))
    return [
        Consumer(
            namespace=name,
            gpus=neat(gpus),
            gpu_memory_mib=neat(mib) if mib else None,
            jobs=running.get(name, 0),
        )
        for name, (gpus, mib) in top
        if gpus or mib
    ]


def starved_leaves(rows: Sequence[QuotaRow]) -> list[StarvedLeaf]:
    """Leaves that wait below their guarantee, the largest gap first.

    Each with its scarcest resource (GPUs before cores).
    """
    starved = starved_paths(rows)
    scarcest: dict[str, QuotaRow] = {}
    for row in rows:
        if row.path in starved and row.requested > row.used:
            known = scarcest.get(row.path)
            if known is None or _scarcity(row) < _scarcity(known):
                scarcest[row.path] = row
    found = sorted(scarcest.values(), key=lambda row: (row.used / row.min, row.path))
    return [
        StarvedLeaf(
            path=row.path,
            resource=row.resource,
            unit=row.unit,
            min=row.min,
            used=row.used,
            waiting_pods=row.waiting_pods,
        )
        for row in found[:LIST_MAX]
    ]


def _scarcity(row: QuotaRow) -> tuple[bool, float]:
    return (not is_gpu_resource(row.resource), row.used / row.min)


def faulty_gpus(occupancy: ClusterOccupancy) -> list[FaultyGpu]:
    """Broken cards by node and index.

    Where a node only offers fewer GPUs than it has, one row without an index.
    """
    return list(islice((fault for each in occupancy.nodes for fault in _faults(each)), LIST_MAX))


def _faults(occupied: NodeOccupancy) -> Iterator[FaultyGpu]:
    for card in occupied.cards:
        if card.is_healthy is False:
            yield FaultyGpu(
                node=card.node,
                index=card.index,
                uuid=card.uuid,
                model=card.model,
                reason=card.reason,
            )
    withheld = withheld_gpus(occupied)
    if withheld:
        reason = (
            f"{withheld} of {counted(occupied.gpus_total, 'GPU')} not "
            "offered to pods; which ones is unknown"
        )
        yield FaultyGpu(node=occupied.node.name, index=None, uuid="", model="", reason=reason)


def recent_warnings(
    events: Iterable[Event], now: float, job_of: Callable[[Event], str]
) -> list[RecentWarning]:
    """Warning events of the last hour, newest first; similar ones are one row."""
    fresh = (
        event
        for event in events
        if event.type == "Warning" and event.at is not None and now - event.at <= _WARNING_SECONDS
    )
    alike: dict[tuple[str, str, str], list[Event]] = {}
    for event in fresh:
        alike.setdefault((event.about_namespace, event.object_kind, event.reason), []).append(event)
    groups = [(max(events, key=lambda event: event.order), events) for events in alike.values()]
    newest = heapq.nlargest(LIST_MAX, groups, key=lambda group: group[0].order)
    return [
        RecentWarning(
            at=timestamp(last.at),
            namespace=last.about_namespace,
            object=f"{last.object_kind}/{last.object_name}",
            reason=last.reason,
            message=last.message,
            count=sum(event.count for event in events),
            objects=len({event.object_name for event in events}),
            job=job_of(last),
            node=last.object_name if last.object_kind == "Node" else "",
        )
        for last, events in newest
    ]
