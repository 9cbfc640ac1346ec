"""`arena scalein etjob`: remove workers from an elastic job."""

from __future__ import annotations

import argparse

from fairlead.cli.frame.context import Context
from fairlead.cli.jobs.scale_etjob import add_scale_flags, scale

NAME = "scalein etjob"
HELP = "Remove workers from a running elastic training job. et-operator carries it out."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from fairlead.kinds.parts.elastic_scaling import IN

    add_scale_flags(parser, IN.script)


def run(args: argparse.Namespace, context: Context) -> int:
    from fairlead.kinds.parts.elastic_scaling import IN

    return scale(args, context, IN)
