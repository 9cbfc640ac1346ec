"""Chooses the pod of a job that a command means: its chief, or the one that -i names.

See docs/spec/arena-cli.md#logs.

A job that has pods may have no chief yet (launchers come last), and no other pod is taken in its
stead.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from fairlead.cli.jobs.job_search import find_job
from fairlead.errors import OutsideError, UserError
from fairlead.model.refusal import Refusal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairlead.cli.frame.context import ClusterJobs
    from fairlead.model.jobs.job import Job
    from fairlead.model.pod import Pod


def chosen_pod(
    args: argparse.Namespace, jobs: ClusterJobs, namespace: str
) -> tuple[Job, Pod | Refusal]:
    """The job and its pod; refused without a chief. Raises UserError for a pod of another job."""
    from fairlead.kinds.instances import instances_of

    found = find_job(jobs, args.job, namespace, args.type)
    pods = found.sources.get("pods")
    if pods is not None and not pods.is_ok:
        raise OutsideError(
            "kubernetes", f"the pods of job {args.job} cannot be read: {pods.message}", pods.hint
        )
    job = instances_of(found.jobs[0], found)
    if not job.pods:
        return job.job, _no_pod(job.job)
    if not args.instance:
        return job.job, job.chief or _no_chief(job.pods)
    for pod in job.pods:
        if pod.name == args.instance:
            return job.job, pod
    raise UserError(
        (
            f"invalid instance name {args.instance} in job {args.job},please use 'arena get "
            f"{args.job}' to make sure instance name"
        ),
        f"it has {', '.join(pod.name for pod in job.pods)}",
    )


def _no_pod(job: Job) -> Refusal:
    from fairlead.rules.jobs.status import is_over
    from fairlead.rules.jobs.waiting import why_no_pod

    why = why_no_pod(job)
    return Refusal(why if is_over(job) else f"not found instances of the job {job.name}: {why}")


def _no_chief(pods: Sequence[Pod]) -> Refusal:
    names = "\n".join(pod.name for pod in pods)
    return Refusal(
        f"There is {len(pods)} instances have been found:\n\n{names}\n\nplease use '-i' or "
        "'--instance' to filter.\n"
    )
