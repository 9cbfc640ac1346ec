"""`arena logs JOB`: what did its chief, or one of its pods, write? (arena contract §1)

What a newcomer gets wrong: with -f a job may have no pod yet, and its container may not have begun; both are waited for.
"""

from __future__ import annotations

import argparse

from fairlead.cli.context import Context
from fairlead.cli.job_pod import chosen_pod
from fairlead.cli.job_search import add_type
from fairlead.cli.pod_log import POLL_SECONDS, add_log_flags, container_of, has_begun, log_options, print_log, waits_for
from fairlead.errors import UserError

NAME = "logs"
HELP = """Print the log of a training job: of its chief pod, or of the pod that -i names.

With -f it is followed from the beginning, also of a job that is still waiting, until the container ends."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("job", metavar="JOB", help="the job's name")
    add_type(parser)
    add_log_flags(parser, "this pod instead of the chief")


def run(args: argparse.Namespace, context: Context) -> int:
    options = log_options(args)
    jobs, namespace = context.world.jobs(), context.world.namespace()
    pod = chosen_pod(args, jobs, namespace)
    while args.follow and (pod is None or not has_begun(pod, container_of(pod, args.container))):
        context.sleep(POLL_SECONDS)
        pod = chosen_pod(args, jobs, namespace)
    if pod is None:
        raise UserError(f"job {args.job} has no pod whose log could be shown yet", f"`arena get {args.job} --explain` says why; -f waits")
    container = container_of(pod, args.container)
    if not has_begun(pod, container):
        hint = f"`arena get {args.job} --explain` says why; -f waits"
        raise UserError(f"container {container} of pod {pod.name} has not begun: {waits_for(pod, container)}", hint)
    print_log(context, jobs, pod, container, options)
    return 0
