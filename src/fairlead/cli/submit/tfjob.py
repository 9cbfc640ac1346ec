"""`arena submit tfjob`: its flags and nothing else; `submit` does the work."""

from __future__ import annotations

import argparse

from fairlead.cli.frame.context import Context
from fairlead.cli.submit.flags import add_common_flags, add_tf_flags
from fairlead.cli.submit.submit import submit

NAME = "submit tfjob"
HELP = "Submit a TFJob: workers, parameter servers, a chief, an evaluator."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_common_flags(parser)
    add_tf_flags(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    from fairlead.cli.submit.spec import tf_spec
    from fairlead.kinds.submission import Submission
    from fairlead.kinds.training import tfjob

    return submit(args, context, Submission(tfjob), tf_spec)
