"""`arena serve attach JOB [-- CMD...]`: run a command, a shell by default, inside a pod of a
serving job (docs/spec/arena-cli.md#serving-jobs).
"""

from __future__ import annotations

import argparse

from fairlead.cli.frame.context import Context
from fairlead.cli.frame.pod_exec import add_exec_flags, run_in_pod
from fairlead.cli.serving.logs import serving_pod
from fairlead.cli.serving.search import add_type, add_version

NAME = "serve attach"
HELP = """Run a command in a container of a serving job: a shell, or what stands after `--`; in its
pod, or in the one that -i names.

With a terminal as stdin the command gets one, too. The exit status is the command's."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("job", metavar="SERVING_JOB", help="the job's name")
    add_exec_flags(parser, "the pod, when there are several")
    add_type(parser)
    add_version(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    return run_in_pod(args, context, context.world.jobs(), serving_pod(args, context), "serve logs")
