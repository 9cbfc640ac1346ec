"""`arena submit deepspeedjob`: its flags and what they mean; `submit` does the work."""

from __future__ import annotations

import argparse

from msgspec.structs import replace

from fairlead.cli.frame.context import Context, Machine
from fairlead.cli.submit.elastic import ELASTIC, elastic_spec
from fairlead.cli.submit.spec import add_job_flags
from fairlead.cli.submit.submit import SubmitVerb, submit
from fairlead.kinds.parts.job_spec import JobSpec

NAME = "submit deepspeedjob"
HELP = """Submit a DeepSpeed job: a launcher that runs the command, and workers that
it reaches by ssh.

If the cluster has no operator for elastic training, the job becomes an MPIJob."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_job_flags(parser, ELASTIC)


def run(args: argparse.Namespace, context: Context) -> int:
    return submit(args, context, what())


def what() -> SubmitVerb:
    from fairlead.kinds.submission import Submission
    from fairlead.kinds.training import deepspeedjob, mpijob

    return SubmitVerb(Submission(deepspeedjob, instead=Submission(mpijob)), deepspeed_spec)


def deepspeed_spec(args: argparse.Namespace, namespace: str, machine: Machine) -> JobSpec:
    """Configures NCCL to raise errors, so that a lost worker
    ends the job instead of blocking it.
    """
    spec = elastic_spec(args, namespace, machine, ELASTIC)
    return replace(spec, env={"NCCL_ASYNC_ERROR_HANDLING": "1", **spec.env})
