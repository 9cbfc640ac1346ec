"""What goes into the built-in history at each tick: the numbers of the board state.

Of a large cluster only the first 200 GPU nodes by name are kept (decision 9); unknown numbers are
left out and become gaps.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from fairlead.console.boards.board_state import BoardState
from fairlead.console.boards.job_detail import instance_rows
from fairlead.console.boards.overview import gpu_counts, gpu_memory, job_counts
from fairlead.console.charts.history import Labels, LineSample
from fairlead.console.pages.envelope import percent, percent_of
from fairlead.model.devices.gpu import GpuReading
from fairlead.rules.pods.devices import has_gpu

SAMPLED: Final = ("totals", "jobs", "quota")
"""Parts of a board state that samples are taken of."""
NODES_MAX: Final = 200
JOBS_MAX: Final = 500


def samples_of(board_state: BoardState) -> Iterator[LineSample]:
    """All samples of one tick."""
    yield from _cluster_samples(board_state)
    yield from _node_samples(board_state)
    yield from _gpu_samples(board_state)
    yield from _pod_samples(board_state)
    yield from _job_samples(board_state)
    yield from _instance_samples(board_state)
    yield from _quota_samples(board_state)


def _some(query: str, labels: Labels, value: float | None) -> Iterator[LineSample]:
    if value is not None:
        yield LineSample(query, labels, float(value))


def _cluster_samples(board_state: BoardState) -> Iterator[LineSample]:
    totals = board_state.totals
    memory, gpus = gpu_memory(totals), gpu_counts(totals)
    busy = percent(totals.utilization_ratio)
    yield from _some("cluster-gpu-utilization", (("line", "utilization"),), busy)
    for line, mib in (
        ("used", memory.used_mib),
        ("allocated", memory.allocated_mib),
        ("total", memory.total_mib),
    ):
        yield from _some("cluster-gpu-memory", (("line", line),), mib)
    yield from _some("cluster-gpus-allocated", (("line", "allocated"),), gpus.allocated)
    yield from _some("cluster-gpus-allocated", (("line", "total"),), gpus.total)
    jobs = job_counts(board_state.job_list)
    for line, count in (
        ("running", jobs.running),
        ("pending", jobs.pending),
        ("succeeded", jobs.succeeded),
        ("failed", jobs.failed),
    ):
        yield from _some("cluster-jobs", (("line", line),), count)


def _node_samples(board_state: BoardState) -> Iterator[LineSample]:
    for each in board_state.occupancy.nodes[:NODES_MAX]:
        labels = (("node", each.node.name),)
        yield from _some("node-gpus-allocated", labels, each.gpus_allocated)
        yield from _some("node-gpus-total", labels, each.gpus_total)
        yield from _some("node-gpu-memory-total", labels, each.memory_total_mib)
        for line, mib in (
            ("used", each.memory_used_mib),
            ("allocated", each.memory_allocated_mib),
            ("total", each.memory_total_mib),
            ("rest", _rest(board_state.snapshot.gpus_on(each.node.name))),
        ):
            yield from _some("node-gpu-memory", (*labels, ("line", line)), mib)


def _rest(readings: Sequence[GpuReading]) -> float | None:
    """What is used by no container that has a grant; None while it is not known of all."""
    used = [reading.memory_used_mib for reading in readings]
    held = [holder.memory_used_mib for reading in readings for holder in reading.holders]
    if not used or None in used or None in held:
        return None
    return max(0.0, sum(mib or 0.0 for mib in used) - sum(mib or 0.0 for mib in held))


def _gpu_samples(board_state: BoardState) -> Iterator[LineSample]:
    for each in board_state.occupancy.nodes[:NODES_MAX]:
        for reading in board_state.snapshot.gpus_on(each.node.name):
            yield from _reading_samples(reading)
            yield from _holder_samples(reading)


def _reading_samples(reading: GpuReading) -> Iterator[LineSample]:
    labels = (("node", reading.node), ("gpu", str(reading.index)), ("uuid", reading.uuid))
    ratio = reading.utilization_ratio
    yield from _some("gpu-duty-cycle", labels, None if ratio is None else ratio * 100)
    yield from _some("gpu-memory-used", labels, reading.memory_used_mib)
    yield from _some(
        "gpu-memory-used-percent",
        labels,
        percent_of(reading.memory_used_mib, reading.memory_total_mib),
    )
    yield from _some("gpu-temperature", labels, reading.temperature_celsius)
    yield from _some("gpu-power", labels, reading.power_watts)


def _holder_samples(reading: GpuReading) -> Iterator[LineSample]:
    """What each container uses of the card.

    Of one that has the card for itself, its limit is the card.
    """
    card = (("node", reading.node), ("gpu", str(reading.index)), ("uuid", reading.uuid))
    for holder in reading.holders:
        labels = (
            *card,
            ("namespace", holder.namespace),
            ("pod", holder.pod),
            ("container", holder.container),
        )
        limit = (
            holder.memory_limit_mib
            if holder.memory_limit_mib is not None
            else reading.memory_total_mib
        )
        ratio = holder.utilization_ratio
        yield from _some("container-gpu-memory-used", labels, holder.memory_used_mib)
        yield from _some(
            "container-gpu-memory-percent", labels, percent_of(holder.memory_used_mib, limit)
        )
        yield from _some(
            "container-gpu-utilization", labels, None if ratio is None else ratio * 100
        )
        yield from _some("container-gpu-memory-limit", labels, limit)
    for namespace, pod in dict.fromkeys(
        (holder.namespace, holder.pod) for holder in reading.holders
    ):
        yield from _some(
            "pod-gpu-power", (*card, ("namespace", namespace), ("pod", pod)), reading.power_watts
        )


def _pod_samples(board_state: BoardState) -> Iterator[LineSample]:
    """Pods that ask for a GPU on the nodes whose cards are kept."""
    for each in board_state.occupancy.nodes[:NODES_MAX]:
        for pod in board_state.snapshot.pods_on(each.node.name):
            if pod.is_holding and has_gpu(pod):
                labels = (("node", each.node.name), ("namespace", pod.namespace), ("pod", pod.name))
                yield from _some(
                    "pod-restarts",
                    labels,
                    sum(status.restarts for status in (*pod.statuses, *pod.init_statuses)),
                )


def _job_samples(board_state: BoardState) -> Iterator[LineSample]:
    """Running jobs, the newest first."""
    for row in islice((row for row in board_state.job_list if row.status == "Running"), JOBS_MAX):
        labels = (("namespace", row.namespace), ("type", row.type), ("job", row.name))
        yield from _some("job-gpu-utilization", labels, row.gpu_util_percent)
        yield from _some("job-gpu-memory-used", labels, row.gpu_memory_used_mib)
        yield from _some("job-gpu-memory-allocated", labels, row.gpu_memory_allocated_mib)


def _instance_samples(board_state: BoardState) -> Iterator[LineSample]:
    """Running instances that hold a GPU; launchers have nothing to draw."""
    running = {
        (row.namespace, row.type, row.name)
        for row in islice((r for r in board_state.job_list if r.status == "Running"), JOBS_MAX)
    }
    for each in board_state.instances:
        if each.job.key not in running:
            continue
        for instance in instance_rows(
            each,
            board_state.occupancy,
            board_state.now,
            board_state.explainer,
            board_state.silent_nodes,
        ):
            if instance.status != "Running" or not instance.gpus:
                continue
            job = each.job
            labels = (
                ("namespace", job.namespace),
                ("type", job.type),
                ("job", job.name),
                ("instance", instance.name),
                ("node", instance.node),
            )
            yield from _some("instance-gpu-memory-used", labels, instance.gpu_memory_used_mib)
            used = percent_of(instance.gpu_memory_used_mib, instance.gpu_memory_used_of_mib)
            yield from _some("instance-gpu-memory-percent", labels, used)
            yield from _some("instance-gpu-duty-cycle", labels, instance.gpu_util_percent)


def _quota_samples(board_state: BoardState) -> Iterator[LineSample]:
    for row in board_state.quota_list:
        labels = (("path", row.path), ("name", row.name), ("resource", row.resource))
        yield from _some("quota-used", labels, row.used)
        yield from _some("quota-min", labels, row.min)
        yield from _some("quota-max", labels, row.max)
