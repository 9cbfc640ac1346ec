"""Shows the log of one pod: flags, parameters of the API, the container that is meant.

All verbs that show logs use it.

A container that waits for its next try has a log, one that was never started has none.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

from fairlead.cli.frame.context import ClusterJobs, Context
from fairlead.cli.frame.flags import BooleanFlag
from fairlead.errors import UserError

if TYPE_CHECKING:
    from fairlead.model.pod import ContainerStatus, Pod

INIT_CODE: Final = "init-code"
POLL_SECONDS: Final = 1.0
_WHOLE_LOG: Final = -1


def add_log_flags(parser: argparse.ArgumentParser, instance: str) -> None:
    """`instance`: what `-i` is for."""
    parser.add_argument("--follow", "-f", action=BooleanFlag, help="go on until the container ends")
    parser.add_argument(
        "--since", metavar="SPAN", default="", help="only what is newer than 5s, 2m or 3h"
    )
    parser.add_argument(
        "--since-time",
        metavar="TIME",
        default="",
        help="only what is newer than a time such as 2026-01-05T09:30:00Z",
    )
    parser.add_argument(
        "--tail",
        "-t",
        metavar="N",
        type=int,
        default=_WHOLE_LOG,
        help="only the last N lines (default -1: all)",
    )
    parser.add_argument("--timestamps", action=BooleanFlag, help="the time before each line")
    parser.add_argument("--instance", "-i", metavar="POD", default="", help=instance)
    parser.add_argument(
        "--container", "-c", metavar="NAME", default="", help="this container of the pod"
    )


def log_options(args: argparse.Namespace) -> dict[str, str | int]:
    """Parameters of the API's `pods/log`. Raises UserError before anything is asked."""
    if args.since and args.since_time:
        raise UserError(
            "at most one of `sinceTime` or `sinceSeconds` may be specified",
            "leave out `--since` or `--since-time`",
        )
    if args.tail < _WHOLE_LOG:
        raise UserError(
            f"invalid value {args.tail} for --tail", "give a number of lines, or -1 for all"
        )
    options: dict[str, str | int] = {}
    if args.follow:
        options["follow"] = "true"
    if args.timestamps:
        options["timestamps"] = "true"
    if args.tail != _WHOLE_LOG:
        options["tailLines"] = args.tail
    if args.since:
        options["sinceSeconds"] = _seconds(args.since)
    if args.since_time:
        options["sinceTime"] = _checked_time(args.since_time)
    return options


def _seconds(text: str) -> int:
    from math import ceil

    from fairlead.wire.text.time_span import parse_span

    try:
        seconds = ceil(parse_span(text))
    except ValueError as error:
        raise UserError(f"invalid value for --since: {error}", "give `5s`, `2m` or `3h`") from error
    if seconds <= 0:
        raise UserError(
            f"--since must be more than nothing, not `{text}`", "give `5s`, `2m` or `3h`"
        )
    return seconds


def _checked_time(text: str) -> str:
    from datetime import datetime

    try:
        is_exact = datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        is_exact = False
    if not is_exact:
        raise UserError(
            f"--since-time takes a time of RFC 3339, not `{text}`",
            "write it as `2026-01-05T09:30:00Z`",
        )
    return text


def container_of(pod: Pod, named: str) -> str:
    """The one that is named; of a pod that initializes the one that fetches the code;
    else its first.
    """
    from fairlead.rules.pods.status import pod_status

    inits = [container.name for container in pod.init_containers]
    if named:
        known = [container.name for container in pod.containers] + inits
        if named not in known:
            raise UserError(
                f"container {named} is not valid for pod {pod.name}",
                f"it has {', '.join(known)}",
            )
        return named
    if INIT_CODE in inits and pod_status(pod).startswith(("Init:", "PodInitializing")):
        return INIT_CODE
    return pod.containers[0].name


def _status(pod: Pod, container: str) -> ContainerStatus | None:
    return next(
        (status for status in (*pod.statuses, *pod.init_statuses) if status.name == container), None
    )


def has_begun(pod: Pod, container: str) -> bool:
    """Whether there is a log: the container runs, has ended, or waits for its next try."""
    status = _status(pod, container)
    if status is None:
        return pod.is_finished
    return status.has_begun or status.restarts > 0


def waits_for(pod: Pod, container: str) -> str:
    from fairlead.rules.jobs.waiting import why_pod_waits

    wait, status = why_pod_waits(pod), _status(pod, container)
    return wait.message if wait is not None else (status and status.reason) or pod.phase


def print_log(
    context: Context, jobs: ClusterJobs, pod: Pod, container: str, options: dict[str, str | int]
) -> None:
    """As it comes, byte for byte: a log may be no text, and may colour itself, as with kubectl."""
    for piece in jobs.log(pod.namespace, pod.name, {"container": container, **options}):
        context.stdout.write_bytes(piece)
