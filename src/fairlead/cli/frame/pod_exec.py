"""Runs a command in a container of one pod: the flags, what is refused at once, the exit status.

All attaching verbs use it.

Nothing joins the program that is there (as `kubectl attach` does); another one starts beside it, as
`kubectl exec` does. The exit status is that program's.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

from fairlead.cli.frame.context import ClusterJobs, Context
from fairlead.cli.frame.pod_log import container_of
from fairlead.errors import OutsideError, UserError

if TYPE_CHECKING:
    from fairlead.model.pod import Pod

SHELL: Final = "sh"
_STATUS_MAX: Final = 255  # Windows containers know greater ones, of which 256 must not become 0


def add_exec_flags(parser: argparse.ArgumentParser, instance: str) -> None:
    """`instance`: what `-i` is for."""
    parser.add_argument(
        "command",
        metavar="CMD",
        nargs="*",
        default=[],
        help=f"the command, its arguments after it (default {SHELL})",
    )
    parser.add_argument("--instance", "-i", metavar="POD", default="", help=instance)
    parser.add_argument(
        "--container", "-c", metavar="NAME", default="", help="this container of the pod"
    )


def run_in_pod(
    args: argparse.Namespace, context: Context, jobs: ClusterJobs, pod: Pod, logs: str
) -> int:
    """The exit status of the command, which has our streams; and, when they are one, our terminal.

    `logs`: the verb beside this one.
    """
    from fairlead.cli.frame.terminal import OwnStreams

    if pod.is_finished:  # the API server's error would only be that the container is not found
        what = f"cannot exec into a container in a completed Instance; current phase is {pod.phase}"
        raise UserError(
            what,
            f"read what it wrote with `arena {logs} {args.job} -n {pod.namespace} -i {pod.name}`",
        )
    container, streams = container_of(pod, args.container), OwnStreams(context.stdout)
    if streams.is_terminal:  # a script's stderr is the command's alone
        _greet(context, pod, container, is_named=bool(args.container))
    end = jobs.execute(pod.namespace, pod.name, container, args.command or [SHELL], streams)
    if end.exit_code is None:
        raise OutsideError("kubernetes", end.message, f"pod {pod.name} is {pod.phase}")
    if end.exit_code:
        context.messages.error(f"command terminated with exit code {end.exit_code}")
    return end.exit_code if 0 <= end.exit_code <= _STATUS_MAX else _STATUS_MAX


def _greet(context: Context, pod: Pod, container: str, *, is_named: bool) -> None:
    """In arena's words."""
    if len(pod.containers) > 1 and not is_named:
        context.messages.plain(f"Defaulting container name to {container}.")
    context.messages.plain(f"Hello! Arena attach the container {container} of instance {pod.name}")
