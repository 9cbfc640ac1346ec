"""`arena logs JOB`: what did its chief, or one of its pods, write? (arena contract §1)

What a newcomer gets wrong: with -f a job may have no pod yet, and its container may not have begun; both are waited for.
"""

from __future__ import annotations

import argparse
import codecs
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from fairlead.cli.context import ClusterJobs, Context
from fairlead.cli.flags import BooleanFlag
from fairlead.cli.job_search import add_type, find_job
from fairlead.errors import OutsideError, UserError

if TYPE_CHECKING:
    from fairlead.model.pod import ContainerStatus, Pod

NAME = "logs"
HELP = """Print the log of a training job: of its chief pod, or of the pod that -i names.

With -f it is followed from the beginning, also of a job that is still waiting, until the container ends."""

INIT_CODE: Final = "init-code"
_POLL_SECONDS: Final = 1.0
_WHOLE_LOG: Final = -1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("job", metavar="JOB", help="the job's name")
    add_type(parser)
    parser.add_argument("--follow", "-f", action=BooleanFlag, help="go on until the container ends")
    parser.add_argument("--since", metavar="SPAN", default="", help="only what is newer than 5s, 2m or 3h")
    parser.add_argument("--since-time", metavar="TIME", default="", help="only what is newer than a time such as 2026-01-05T09:30:00Z")
    parser.add_argument("--tail", "-t", metavar="N", type=int, default=_WHOLE_LOG, help="only the last N lines (default -1: all)")
    parser.add_argument("--timestamps", action=BooleanFlag, help="the time before each line")
    parser.add_argument("--instance", "-i", metavar="POD", default="", help="this pod instead of the chief")
    parser.add_argument("--container", "-c", metavar="NAME", default="", help="this container of the pod")


def run(args: argparse.Namespace, context: Context) -> int:
    options = _options(args)
    jobs, namespace = context.world.jobs(), context.world.namespace()
    pod = _pod(args, jobs, namespace)
    while args.follow and (pod is None or not _has_begun(pod, _container(args, pod))):
        context.sleep(_POLL_SECONDS)
        pod = _pod(args, jobs, namespace)
    if pod is None:
        raise UserError(f"job {args.job} has no pod whose log could be shown yet", f"`arena get {args.job} --explain` says why; -f waits")
    container = _container(args, pod)
    if not _has_begun(pod, container):
        hint = f"`arena get {args.job} --explain` says why; -f waits"
        raise UserError(f"container {container} of pod {pod.name} has not begun: {_waits_for(pod, container)}", hint)
    for text in _decoded(jobs.log(namespace, pod.name, {"container": container, **options})):
        context.stdout.write(text)
        context.stdout.flush()
    return 0


def _options(args: argparse.Namespace) -> dict[str, str | int]:
    """Parameters of the API's `pods/log`. Raises UserError before anything is asked."""
    if args.since and args.since_time:
        raise UserError("at most one of `sinceTime` or `sinceSeconds` may be specified", "leave out `--since` or `--since-time`")
    if args.tail < _WHOLE_LOG:
        raise UserError(f"invalid value {args.tail} for --tail", "give a number of lines, or -1 for all")
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

    from fairlead.wire.time_span import parse_span

    try:
        seconds = ceil(parse_span(text))
    except ValueError as error:
        raise UserError(f"invalid value for --since: {error}", "give `5s`, `2m` or `3h`") from error
    if seconds <= 0:
        raise UserError(f"--since must be more than nothing, not `{text}`", "give `5s`, `2m` or `3h`")
    return seconds


def _checked_time(text: str) -> str:
    from datetime import datetime

    try:
        is_exact = datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        is_exact = False
    if not is_exact:
        raise UserError(f"--since-time takes a time of RFC 3339, not `{text}`", "write it as `2026-01-05T09:30:00Z`")
    return text


def _pod(args: argparse.Namespace, jobs: ClusterJobs, namespace: str) -> Pod | None:
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


def _container(args: argparse.Namespace, pod: Pod) -> str:
    """The one that is named; of a pod that still initializes the one that fetches the code; else its first."""
    from fairlead.rules.pod_status import pod_status

    inits = [container.name for container in pod.init_containers]
    if args.container:
        known = [container.name for container in pod.containers] + inits
        if args.container not in known:
            raise UserError(f"container {args.container} is not valid for pod {pod.name}", f"it has {', '.join(known)}")
        return str(args.container)
    if INIT_CODE in inits and pod_status(pod).startswith("Init:"):
        return INIT_CODE
    return pod.containers[0].name


def _status(pod: Pod, container: str) -> ContainerStatus | None:
    return next((status for status in (*pod.statuses, *pod.init_statuses) if status.name == container), None)


def _has_begun(pod: Pod, container: str) -> bool:
    """Whether there is a log: the container runs, has ended, or waits for its next try."""
    status = _status(pod, container)
    if status is None:
        return pod.is_finished
    return status.state in ("running", "terminated") or status.restarts > 0


def _waits_for(pod: Pod, container: str) -> str:
    from fairlead.rules.waiting import why_pod_waits

    wait, status = why_pod_waits(pod), _status(pod, container)
    return wait.message if wait is not None else (status and status.reason) or pod.phase


def _decoded(pieces: Iterator[bytes]) -> Iterator[str]:
    """Text whose letters may be cut between two pieces; bytes that are no text are shown as `�`."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    for piece in pieces:
        yield decoder.decode(piece)
    yield decoder.decode(b"", final=True)
