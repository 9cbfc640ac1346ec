"""`arena submit mpijob`: its flags and nothing else; `submit` does the work."""

from __future__ import annotations

import argparse

from fairlead.cli.frame.context import Context
from fairlead.cli.submit.flags import add_common_flags, add_mpi_flags
from fairlead.cli.submit.submit import submit

NAME = "submit mpijob"
HELP = "Submit an MPIJob: a launcher that runs the command, and workers that it reaches by ssh."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_common_flags(parser)
    add_mpi_flags(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    from fairlead.cli.submit.spec import mpi_spec
    from fairlead.kinds.submission import Submission
    from fairlead.kinds.training import mpijob

    return submit(args, context, Submission(mpijob), mpi_spec)
