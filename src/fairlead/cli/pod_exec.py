"""How is a command run in a container of one pod? Flags, what can be refused at once, the exit status; shared by every verb that attaches.

What a newcomer gets wrong: nothing joins the program that is there (as `kubectl attach` does); another one starts beside it, as
`kubectl exec` does. The exit status is that program's.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

from fairlead.cli.context import ClusterJobs, Context
from fairlead.cli.pod_log import container_of
from fairlead.errors import OutsideError, UserError

if TYPE_CHECKING:
    from fairlead.model.pod import Pod

SHELL: Final = "sh"
_STATUS_MAX: Final = 255  # Windows containers know greater ones, of which 256 must not become 0


def add_exec_flags(parser: argparse.ArgumentParser, instance: str) -> None:
    """`instance`: what `-i` is for."""
    parser.add_argument("command", metavar="CMD", nargs="*", help=f"the command and its arguments, after `--` (default {SHELL})")
    parser.add_argument("--instance", "-i", metavar="POD", default="", help=instance)
    parser.add_argument("--container", "-c", metavar="NAME", default="", help="this container of the pod")


def run_in_pod(args: argparse.Namespace, context: Context, jobs: ClusterJobs, pod: Pod) -> int:
    """The exit status of the command, which has our streams; and, when they are one, our terminal."""
    from fairlead.cli.terminal import OwnStreams

    if pod.is_finished:  # kubectl's sentence; the API server would only say that it does not find the container
        what = f"cannot exec into a container in a completed pod; current phase is {pod.phase}"
        raise UserError(what, f"read what it wrote with `logs -i {pod.name}`")
    container = container_of(pod, args.container)
    end = jobs.execute(pod.namespace, pod.name, container, args.command or [SHELL], OwnStreams(context.stdout))
    if end.exit_code is None:
        raise OutsideError("kubernetes", end.message, f"pod {pod.name} is {pod.phase}")
    if end.exit_code:
        context.messages.error(f"command terminated with exit code {end.exit_code}")
    return end.exit_code if 0 <= end.exit_code <= _STATUS_MAX else _STATUS_MAX
