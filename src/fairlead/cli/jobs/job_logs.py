"""`arena logs JOB` prints what a job's chief, or one of its pods, wrote.

See docs/spec/arena-cli.md#logs.

With -f a job may have no pod yet, and its container may not have begun; both are waited for.
"""

from __future__ import annotations

import argparse

from fairlead.cli.frame.context import ClusterJobs, Context
from fairlead.cli.frame.pod_log import (
    INIT_CODE,
    POLL_SECONDS,
    add_log_flags,
    container_of,
    has_begun,
    log_options,
    print_log,
    waits_for,
)
from fairlead.cli.jobs.job_pod import chosen_pod
from fairlead.cli.jobs.job_search import add_type
from fairlead.errors import UserError
from fairlead.model.refusal import Refusal

NAME = "logs"
HELP = """Print the log of a training job's chief pod, or of the pod that -i names.

-f follows the log from the beginning until the container ends, also of a job that is
still waiting or suspended."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("job", metavar="JOB", help="the job's name")
    add_type(parser)
    add_log_flags(parser, "this pod instead of the chief")


def run(args: argparse.Namespace, context: Context) -> int:
    options = log_options(args)
    jobs = context.world.jobs()
    shown = _show_next(args, context, jobs, options, None)
    # then comes what the code was fetched for
    while args.follow and shown == INIT_CODE and not args.container:
        shown = _show_next(args, context, jobs, options, shown)
    return 0


def _show_next(
    args: argparse.Namespace,
    context: Context,
    jobs: ClusterJobs,
    options: dict[str, str | int],
    after: str | None,
) -> str | None:
    """The container whose log was shown; None if the pod ended and no later container started."""
    from fairlead.rules.jobs.status import is_over
    from fairlead.rules.jobs.waiting import is_suspended

    while True:
        job, pod = chosen_pod(args, jobs, context.world.namespace())
        has_ended = is_over(job)
        if isinstance(pod, Refusal):
            why = pod.reason
        else:
            container = container_of(pod, args.container)
            if container != after and has_begun(pod, container):
                print_log(context, jobs, pod, container, options)
                return container
            why = (
                f"container {container} of pod {pod.name} has not begun: "
                f"{waits_for(pod, container)}"
            )
            why, has_ended = (
                f"the job has ended: {why}" if has_ended else why,
                has_ended or pod.is_finished,
            )
        if has_ended and after:
            return None
        can_change = not has_ended and context.world.objects() is not None  # a file stays as it is
        if not (can_change and args.follow):
            raise UserError(
                why,
                f"`arena get {args.job} --explain` shows why"
                + ("; -f waits" if can_change else ""),
            )
        if is_suspended(job):
            context.messages.warn(f"{why}; waiting for it")
        context.sleep(POLL_SECONDS)
