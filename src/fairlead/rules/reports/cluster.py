"""The rows behind all metrics of the cluster: occupancy, jobs with their status and use, quota use.

They are computed once per page. The `arena_*` and the native families are two spellings of these
rows, so they cannot differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from fairlead.model.jobs.instances import JobInstances
from fairlead.model.jobs.job import Job
from fairlead.model.occupancy import GpuTotals, NodeOccupancy, PodUse
from fairlead.model.pod import Pod
from fairlead.model.quota.use import QuotaUse, WaitingDemand
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.model.source import SourceState
from fairlead.rules.holding.occupancy import ClusterOccupancy, cluster_occupancy
from fairlead.rules.jobs.status import job_duration, job_status, queue_wait, requested_gpus
from fairlead.rules.pods.status import pod_status
from fairlead.rules.quota.sight import quota_state
from fairlead.rules.quota.usage import lacks_of, usage_of


class InstanceRow(Struct, frozen=True, gc=False):
    pod: Pod
    role: str
    status: str
    use: PodUse


class ReportedJob(Struct, frozen=True, gc=False):
    """A job in a report.

    `status` is the exact word; `use` sums over the pods (in its `gpus` shares count by their part).
    """

    job: Job
    status: str
    duration_seconds: float
    wait_seconds: float | None
    gpus_requested: int
    use: PodUse
    instances: tuple[InstanceRow, ...]


class ClusterSummary(Struct, frozen=True, gc=False):
    """A cluster.

    `jobs` are the newest only; `statuses` has the status word of every job, by (namespace, type).

    `knows_nodes`, `knows_pods`: the source was read at least once. Without it what follows from it
    is absent, never zero. `quota_lacks`: by name of a leaf and resource, what waits for it. `now`:
    epoch seconds.
    """

    snapshot: ClusterSnapshot
    occupancy: ClusterOccupancy
    totals: GpuTotals
    jobs: tuple[ReportedJob, ...]
    statuses: Mapping[tuple[str, str], list[str]]
    quota: tuple[QuotaUse, ...]
    quota_lacks: Mapping[str, Mapping[str, WaitingDemand]] = {}
    knows_nodes: bool = True
    knows_pods: bool = True
    now: float = 0.0

    @property
    def nodes(self) -> tuple[NodeOccupancy, ...]:
        return self.occupancy.nodes


def summarize(
    snapshot: ClusterSnapshot, jobs: Sequence[JobInstances], now: float, max_jobs: int = 5000
) -> ClusterSummary:
    """The rows behind a page.

    If there are more than `max_jobs` jobs, the newest are kept (all of them count in sums by
    status).
    """
    occupancy = cluster_occupancy(snapshot)
    knows_pods = is_known(snapshot, "pods")
    quota = quota_state(snapshot, snapshot.taken_at) if knows_pods and snapshot.quota else None
    statuses: dict[tuple[str, str], list[str]] = {}
    for each in jobs:
        statuses.setdefault((each.job.namespace, each.job.type), []).append(
            job_status(each.job, each.pods)
        )
    return ClusterSummary(
        snapshot=snapshot,
        occupancy=occupancy,
        totals=occupancy.totals(),
        jobs=tuple(_job_row(each, occupancy, now) for each in newest(jobs, max_jobs)),
        statuses=statuses,
        quota=_once(usage_of(quota)) if quota else (),
        quota_lacks=lacks_of(quota) if quota else {},
        knows_nodes=is_known(snapshot, "nodes"),
        knows_pods=knows_pods,
        now=now,
    )


def _once(uses: Iterable[QuotaUse]) -> tuple[QuotaUse, ...]:
    """Each (path, name) once.

    A tree that breaks its own rules must not repeat a series on the page.
    """
    return tuple({(use.node.path, use.node.name): use for use in reversed(tuple(uses))}.values())[
        ::-1
    ]


def is_known(snapshot: ClusterSnapshot, source: str) -> bool:
    """Whether the source's contents can be counted: it was read once, even if it fails now.

    A snapshot without sources is whole.
    """
    found = snapshot.sources.get(source)
    return (
        found is None
        or found.is_ok
        or (found.state == SourceState.FAILING and found.good_at is not None)
    )


def newest(jobs: Sequence[JobInstances], count: int) -> Iterable[JobInstances]:
    """At most `count` jobs, the newest, by (namespace, name, type)."""
    if len(jobs) > count:
        jobs = sorted(jobs, key=lambda each: -(each.job.created_at or 0.0))[:count]
    return sorted(jobs, key=lambda each: (each.job.namespace, each.job.name, each.job.type))


def _job_row(each: JobInstances, occupancy: ClusterOccupancy, now: float) -> ReportedJob:
    return ReportedJob(
        job=each.job,
        status=job_status(each.job, each.pods),
        duration_seconds=job_duration(each.job, now),
        wait_seconds=queue_wait(each.job, each.pods, now),
        gpus_requested=requested_gpus(each.job),
        use=occupancy.use_together(each.pods),
        instances=tuple(
            InstanceRow(pod, role, pod_status(pod), occupancy.use(pod))
            for pod, role in zip(each.pods, each.roles, strict=True)
        ),
    )
