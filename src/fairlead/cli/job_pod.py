"""Which pod of a job does a command mean: its chief, or the one that -i names? Shared by `logs` and `attach` (arena contract §1)."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from fairlead.cli.job_search import find_job
from fairlead.errors import OutsideError, UserError

if TYPE_CHECKING:
    from fairlead.cli.context import ClusterJobs
    from fairlead.model.pod import Pod


def chosen_pod(args: argparse.Namespace, jobs: ClusterJobs, namespace: str) -> Pod | None:
    """The chief, or the pod that is named; None when there is no chief yet."""
    from fairlead.kinds.instances import instances_of

    found = find_job(jobs, args.job, namespace, args.type)
    pods = found.sources.get("pods")
    if pods is not None and pods.state != "ok":
        raise OutsideError("kubernetes", f"the pods of job {args.job} cannot be read: {pods.message}", pods.hint)
    job = instances_of(found.jobs[0], found)
    if not args.instance:
        return job.chief
    for pod in job.pods:
        if pod.name == args.instance:
            return pod
    raise UserError(
        f"invalid instance name {args.instance} in job {args.job},please use 'arena get {args.job}' to make sure instance name",
        f"it has {', '.join(pod.name for pod in job.pods) or 'no pods yet'}",
    )
