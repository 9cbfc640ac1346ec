"""Finds the pods of every job of a snapshot, of any kind."""

from __future__ import annotations

from fairlead.kinds.registry import kind_of
from fairlead.model.jobs.instances import JobInstances
from fairlead.model.jobs.job import Job
from fairlead.model.snapshot import ClusterSnapshot


def instances_of(job: Job, snapshot: ClusterSnapshot) -> JobInstances:
    """The job with its pods, sorted by name; raises KeyError for an unregistered type."""
    kind = kind_of(job)
    pods = kind.pods_of(job, snapshot)
    return JobInstances(
        job, tuple(pods), tuple(kind.role_of(pod) for pod in pods), kind.chief_of(job, pods)
    )


def all_instances(snapshot: ClusterSnapshot) -> tuple[JobInstances, ...]:
    """Every job with its pods, in the snapshot's order."""
    return tuple(instances_of(job, snapshot) for job in snapshot.jobs)
