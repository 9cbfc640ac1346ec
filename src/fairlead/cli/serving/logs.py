"""`arena serve logs JOB` prints what a pod of a serving job wrote.

A serving job has no chief. If it has several pods, the user must name one.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from fairlead.cli.frame.context import Context
from fairlead.cli.frame.pod_log import (
    POLL_SECONDS,
    add_log_flags,
    container_of,
    has_begun,
    log_options,
    print_log,
    waits_for,
)
from fairlead.cli.serving.search import add_type, add_version, find_serving
from fairlead.errors import OutsideError, UserError

if TYPE_CHECKING:
    from fairlead.model.jobs.serving import Serving
    from fairlead.model.pod import Pod

NAME = "serve logs"
HELP = """Print the log of a serving job: of its pod, or of the one that -i names.

With -f it is followed until the container ends."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("job", metavar="SERVING_JOB", help="the job's name")
    add_type(parser)
    add_version(parser)
    add_log_flags(parser, "the pod, when there are several")


def run(args: argparse.Namespace, context: Context) -> int:
    options = log_options(args)
    pod = serving_pod(args, context)
    while (
        args.follow
        and not pod.is_finished
        and not has_begun(pod, container_of(pod, args.container))
    ):
        context.sleep(POLL_SECONDS)
        pod = serving_pod(args, context)
    container = container_of(pod, args.container)
    if not has_begun(pod, container):
        raise UserError(
            f"container {container} of pod {pod.name} has not begun: {waits_for(pod, container)}",
            "" if pod.is_finished else "-f waits for it",
        )
    print_log(context, context.world.jobs(), pod, container, options)
    return 0


def _why_none(serving: Serving) -> str:
    if serving.workload.replicas == 0:
        return "it is scaled to 0 instances"
    return (
        f"it wants {serving.workload.replicas} and none is there yet: "
        "its controller has yet to make them"
    )


def serving_pod(args: argparse.Namespace, context: Context) -> Pod:
    """The pod that is named, else the only one."""
    found = find_serving(args, context, args.job)
    if not found.sources["pods"].is_ok:
        raise OutsideError(
            "kubernetes",
            f"the pods of serving job {args.job} cannot be read: {found.sources['pods'].message}",
        )
    pods = found.servings[0].pods
    if not pods:
        what = (
            f"not found instances of serving job,please use 'arena serve get {args.job}' to get "
            "job information"
        )
        raise UserError(what, _why_none(found.servings[0]))
    if not args.instance and len(pods) == 1:
        return pods[0]
    names = "\n".join(pod.name for pod in pods)
    if not args.instance:
        raise UserError(
            f"there are {len(pods)} instances:\n\n{names}\n\n"
            "please use '-i' or '--instance' to filter."
        )
    for pod in pods:
        if pod.name == args.instance:
            return pod
    what = (
        f"invalid instance name {args.instance} of serving job {args.job},please use 'arena serve "
        f"get {args.job}' to get instance names."
    )
    raise UserError(what, f"it has {names}".replace("\n", ", "))
