"""`arena submit pytorchjob`: its flags and nothing else; `submit` does the work."""

from __future__ import annotations

import argparse

from fairlead.cli.frame.context import Context
from fairlead.cli.submit.flags import add_common_flags, add_pytorch_flags
from fairlead.cli.submit.submit import submit

NAME = "submit pytorchjob"
HELP = "Submit a PyTorchJob: one master and --workers less one workers."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_common_flags(parser)
    add_pytorch_flags(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    from fairlead.cli.submit.spec import pytorch_spec
    from fairlead.kinds.submission import Submission
    from fairlead.kinds.training import pytorchjob

    return submit(args, context, Submission(pytorchjob), pytorch_spec)
