"""Reports about a training job and each of its pods.

Specification: docs/spec/arena-cli.md#job-commands, docs/spec/arena-cli.md#status-and-duration.

Tables, documents and both layouts print them. Requested GPUs come from the job's spec, so they are
right before any pod exists; allocated ones come from the pods.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from fairlead.model.devices.gpu import GpuHolder, GpuReading
from fairlead.model.jobs.instances import JobInstances
from fairlead.model.jobs.job import Job
from fairlead.model.moment import Moment
from fairlead.model.pod import Pod, PodPhase
from fairlead.rules.jobs.status import (
    allocated_gpus,
    instance_age,
    job_duration,
    job_status,
    requested_gpus,
)
from fairlead.rules.nodes.status import SHARE
from fairlead.rules.pods.devices import whole_gpus
from fairlead.rules.pods.status import pod_status
from fairlead.rules.reports.node import natural_key


class GpuUse(Struct, frozen=True, gc=False):
    """One GPU as one pod uses it; None = unknown."""

    index: int
    duty_percent: float | None
    used_mib: float | None
    total_mib: float | None


class InstanceReport(Struct, frozen=True, gc=False):
    """`gpus`: what the pod asks for; `uses`: its GPUs with any known value, by index."""

    pod: Pod
    role: str
    is_chief: bool
    status: str
    age: float
    gpus: int
    uses: tuple[GpuUse, ...] = ()


class JobReport(Struct, frozen=True, gc=False):
    """`duration` in seconds; `node_ip`: where the chief runs, "" while it does not run."""

    job: Job
    status: str
    duration: float
    gpus_requested: int
    gpus_allocated: int
    instances: tuple[InstanceReport, ...]
    chief: Pod | None
    node_ip: str

    @property
    def ended_at(self) -> Moment | None:
        return self.job.finished_at

    @property
    def priority(self) -> str:
        """The priority class that the job names, else the one its pods got."""
        named = (
            instance.pod.priority_class
            for instance in self.instances
            if instance.pod.priority_class
        )
        return self.job.priority_class or next(named, "")


def report_jobs(
    found: Iterable[JobInstances], now: Moment, gpus: Sequence[GpuReading] = ()
) -> list[JobReport]:
    """A report of each job, in the order given; `gpus` may contain cards of other jobs, too."""
    uses = _uses_by_pod(gpus)
    return [_report(each, now, uses) for each in found]


def newest_first(reports: Iterable[JobReport]) -> list[JobReport]:
    """The order of `list`: newest, then namespace, name and type."""
    return sorted(
        reports,
        key=lambda report: (
            -(report.job.created_at or 0.0),
            report.job.namespace,
            report.job.name,
            report.job.type,
        ),
    )


def hungriest_first(reports: Iterable[JobReport]) -> list[JobReport]:
    """The order of `top job`: most GPUs requested, then as `newest_first`."""
    return sorted(newest_first(reports), key=lambda report: -report.gpus_requested)


def _report(
    found: JobInstances, now: Moment, uses: dict[tuple[str, str], list[GpuUse]]
) -> JobReport:
    job, chief = found.job, found.chief
    instances = [
        InstanceReport(
            pod=pod,
            role=role,
            is_chief=chief is not None and pod.key == chief.key,
            status=pod_status(pod),
            age=instance_age(pod, now),
            gpus=whole_gpus(pod.limits),
            uses=tuple(uses.get((pod.namespace, pod.name), ())),
        )
        for pod, role in zip(found.pods, found.roles, strict=True)
    ]
    return JobReport(
        job=job,
        status=job_status(job, found.pods),
        duration=job_duration(job, now),
        gpus_requested=requested_gpus(job),
        gpus_allocated=allocated_gpus(found.pods),
        instances=tuple(sorted(instances, key=lambda instance: natural_key(instance.pod.name))),
        chief=chief,
        node_ip=chief.host_ip if chief is not None and chief.phase != PodPhase.PENDING else "",
    )


def _uses_by_pod(gpus: Iterable[GpuReading]) -> dict[tuple[str, str], list[GpuUse]]:
    """By namespace *and* name: two namespaces may have pods of the same name."""
    uses: dict[tuple[str, str], list[GpuUse]] = {}
    for reading in sorted(gpus, key=lambda reading: (reading.node, reading.index)):
        seen = set()
        for holder in reading.holders:
            key = (holder.namespace, holder.pod)
            if key not in seen:
                seen.add(key)
                uses.setdefault(key, []).append(_use(reading, holder))
    return uses


def _use(reading: GpuReading, holder: GpuHolder) -> GpuUse:
    """A pod that shares its card is shown its own values, if they are known."""
    is_shared = holder.mode == SHARE
    ratio = (
        holder.utilization_ratio
        if is_shared and holder.utilization_ratio is not None
        else reading.utilization_ratio
    )
    used = (
        holder.memory_used_mib
        if is_shared and holder.memory_used_mib is not None
        else reading.memory_used_mib
    )
    total = (
        holder.memory_limit_mib
        if is_shared and holder.memory_limit_mib
        else reading.memory_total_mib
    )
    return GpuUse(reading.index, None if ratio is None else ratio * 100, used, total)
