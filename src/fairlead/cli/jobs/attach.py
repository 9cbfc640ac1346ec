"""`arena attach JOB [-- CMD...]`: run a command, a shell by default, inside a container of a
training job (docs/spec/arena-cli.md#attach).
"""

from __future__ import annotations

import argparse

from fairlead.cli.frame.context import Context
from fairlead.cli.frame.pod_exec import add_exec_flags, run_in_pod
from fairlead.cli.jobs.job_pod import chosen_pod
from fairlead.cli.jobs.job_search import add_type
from fairlead.errors import UserError
from fairlead.model.refusal import Refusal

NAME = "attach"
HELP = """Run a command in a container of a training job: a shell, or the command after `--`, in its
chief pod or in the pod that -i names.

With a terminal as stdin the command gets one, too. The exit status is the command's. The API server
must be of Kubernetes 1.30 or later (or 1.29 with its feature gate
TranslateStreamCloseWebsocketRequests): the command's streams go over a WebSocket, not over SPDY."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("job", metavar="JOB", help="the job's name")
    add_exec_flags(parser, "this pod instead of the chief")
    add_type(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    jobs = context.world.jobs()
    _, pod = chosen_pod(args, jobs, context.world.namespace())
    if isinstance(pod, Refusal):
        raise UserError(pod.reason, f"`arena get {args.job} --explain` shows why")
    return run_in_pod(args, context, jobs, pod, "logs")
