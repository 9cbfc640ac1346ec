"""`arena submit mpijob`: its flags, and what they mean; `submit` does the work."""

from __future__ import annotations

import argparse
from typing import Final

from fairlead.cli.frame.context import Context, Machine
from fairlead.cli.frame.flags import truth
from fairlead.cli.submit.spec import COMMON, ONE_SIZE, TIMES, add_job_flags, one_size_spec
from fairlead.cli.submit.submit import SubmitVerb, submit
from fairlead.kinds.parts.job_spec import JobSpec

NAME = "submit mpijob"
HELP = "Submit an MPIJob: a launcher that runs the command, and workers that it reaches by ssh."

_FLAGS: Final = (
    *COMMON,
    *TIMES,
    *ONE_SIZE,
    truth(
        "--mounts-on-launcher",
        "mounts_on_launcher",
        help="mount --data and --data-dir on the launcher, too",
    ),
    truth("--gputopology", "has_gpu_topology", help="let the scheduler choose GPUs by their links"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_job_flags(parser, _FLAGS)


def run(args: argparse.Namespace, context: Context) -> int:
    return submit(args, context, what())


def what() -> SubmitVerb:
    from fairlead.kinds.submission import Submission
    from fairlead.kinds.training import mpijob

    return SubmitVerb(Submission(mpijob), mpi_spec)


def mpi_spec(args: argparse.Namespace, namespace: str, machine: Machine) -> JobSpec:
    return one_size_spec(args, namespace, machine, _FLAGS)
