"""`arena attach JOB [-- CMD...]`: run a command, a shell by default, inside a container of a training job (arena contract §1).

What a newcomer gets wrong: it does not join the program that trains (as `kubectl attach` does); it starts another one beside it, as
`kubectl exec` does. The exit status is that program's.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

from fairlead.cli.context import Context
from fairlead.cli.job_pod import chosen_pod
from fairlead.cli.job_search import add_type
from fairlead.cli.pod_log import container_of
from fairlead.errors import OutsideError, UserError

if TYPE_CHECKING:
    from fairlead.model.pod import Pod

NAME = "attach"
HELP = """Run a command in a container of a training job: a shell, or what stands after `--`; in its chief pod, or in the one that -i names.

With a terminal as stdin the command gets one, too. The exit status is the command's."""

SHELL: Final = "sh"
_STATUS_MAX: Final = 255  # Windows containers know greater ones, of which 256 must not become 0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("job", metavar="JOB", help="the job's name")
    parser.add_argument("command", metavar="CMD", nargs="*", help=f"the command and its arguments, after `--` (default {SHELL})")
    add_type(parser)
    parser.add_argument("--instance", "-i", metavar="POD", default="", help="this pod instead of the chief")
    parser.add_argument("--container", "-c", metavar="NAME", default="", help="this container of the pod")


def run(args: argparse.Namespace, context: Context) -> int:
    from fairlead.cli.terminal import OwnStreams

    jobs, namespace = context.world.jobs(), context.world.namespace()
    pod = chosen_pod(args, jobs, namespace)
    if pod is None:
        raise UserError(f"job {args.job} has no pod to attach to yet", f"`arena get {args.job} --explain` says why")
    _check_lives(pod, args.job)
    container = container_of(pod, args.container)
    end = jobs.execute(namespace, pod.name, container, args.command or [SHELL], OwnStreams(context.stdout))
    if end.exit_code is None:
        raise OutsideError("kubernetes", end.message, f"`arena get {args.job} --explain` says how its pods are")
    if end.exit_code:
        context.messages.error(f"command terminated with exit code {end.exit_code}")
    return end.exit_code if 0 <= end.exit_code <= _STATUS_MAX else _STATUS_MAX


def _check_lives(pod: Pod, job: str) -> None:
    """kubectl's sentence; the API server would only say that it does not find the container."""
    if pod.is_finished:
        what = f"cannot exec into a container in a completed pod; current phase is {pod.phase}"
        raise UserError(what, f"`arena logs {job} -i {pod.name}` shows what it wrote")
