"""`arena scaleout etjob`: add workers to an elastic job."""

from __future__ import annotations

import argparse

from fairlead.cli.frame.context import Context
from fairlead.cli.jobs.scale_etjob import add_scale_flags, scale

NAME = "scaleout etjob"
HELP = "Add workers to a running elastic training job. et-operator carries it out."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from fairlead.kinds.parts.elastic_scaling import OUT

    add_scale_flags(parser, OUT.script)


def run(args: argparse.Namespace, context: Context) -> int:
    from fairlead.kinds.parts.elastic_scaling import OUT

    return scale(args, context, OUT)
