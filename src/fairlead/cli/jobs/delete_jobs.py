"""`arena delete JOB…` ends training jobs and removes all that belongs to them.

See docs/spec/arena-cli.md#delete, docs/spec/arena-cli.md#messages-of-the-commands.

A name that does not exist is no failure, and never stops the names after it.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from fairlead.cli.frame.context import ClusterJobs, Context
from fairlead.cli.frame.object_names import check_name
from fairlead.cli.jobs.job_search import add_type, kinds_of, without_others_jobs
from fairlead.errors import FairleadError, OutsideError, UserError

if TYPE_CHECKING:
    from fairlead.kinds.parts.kind import JobKind

NAME = "delete"
HELP = (
    "Delete training jobs with their pods and other objects. A name that does not exist is "
    "reported and skipped."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("jobs", nargs="+", metavar="JOB", help="names of the jobs")
    add_type(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    kinds, jobs, namespace = kinds_of(args.type), context.world.jobs(), context.world.namespace()
    status = 0
    for name in dict.fromkeys(args.jobs):
        try:
            _delete(jobs, kinds, namespace, name, context)
        except FairleadError as error:
            context.messages.error(error.what, error.hint)
            status = 1
    return status


def _delete(
    jobs: ClusterJobs, kinds: tuple[JobKind, ...], namespace: str, name: str, context: Context
) -> None:
    check_name(name)
    found = without_others_jobs(jobs.read_jobs(kinds, namespace, name, with_pods=False), name)
    if len(found.jobs) > 1:
        raise UserError(
            f"there are more than 1 training jobs with the same name {name}, "
            f"please double check with `arena list | grep {name}`. "
            f"And use `arena delete {name} --type` to delete the exact one"
        )
    failed = [
        source for source in found.sources.values() if source.has_failed and source.name != "pods"
    ]
    if not found.jobs and failed:
        raise OutsideError(
            "kubernetes",
            f"it is unknown whether the training job {name} exists: {failed[0].message}",
            failed[0].hint,
        )
    by_type = {kind.TYPE: kind for kind in kinds}
    if found.jobs and jobs.delete(by_type[found.jobs[0].type], found.jobs[0]):
        context.messages.info(f"The training job {name} has been deleted successfully")
    elif left := jobs.delete_left(kinds, namespace, name):
        context.messages.info(
            f"The training job {name} was gone already; what was left of it has been deleted: "
            f"{', '.join(left)}"
        )
    else:
        context.messages.warn(f"The training job '{name}' does not exist,skip to delete it")
