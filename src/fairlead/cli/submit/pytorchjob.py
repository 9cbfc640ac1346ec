"""`arena submit pytorchjob`: its flags, and what they mean; `submit` does the work."""

from __future__ import annotations

import argparse
from typing import Final

from fairlead.cli.frame.context import Context, Machine
from fairlead.cli.frame.flags import text
from fairlead.cli.frame.values import invalid
from fairlead.cli.submit.spec import COMMON, ONE_SIZE, TIMES, add_job_flags, one_size_spec
from fairlead.cli.submit.submit import SubmitVerb, submit
from fairlead.kinds.parts.job_spec import JobSpec

NAME = "submit pytorchjob"
HELP = "Submit a PyTorchJob: one master and --workers less one workers."


def _nproc(flag: str, text: str) -> str:
    if (
        text
        and text not in ("auto", "cpu", "gpu")
        and not (text.isascii() and text.isdigit() and int(text[:9]) > 0 and len(text) <= 9)
    ):
        raise invalid(
            f"--{flag} is invalid: unknown value {text}",
            "it is auto, cpu, gpu or a number from 1",
        )
    return text


_FLAGS: Final = (
    *COMMON,
    *TIMES,
    *ONE_SIZE,
    text(
        "--nproc-per-node",
        "nproc_per_node",
        _nproc,
        metavar="N",
        help="processes of each pod: auto, cpu, gpu or a number",
    ),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_job_flags(parser, _FLAGS)


def run(args: argparse.Namespace, context: Context) -> int:
    return submit(args, context, what())


def what() -> SubmitVerb:
    from fairlead.kinds.submission import Submission
    from fairlead.kinds.training import pytorchjob

    return SubmitVerb(Submission(pytorchjob), pytorch_spec)


def pytorch_spec(args: argparse.Namespace, namespace: str, machine: Machine) -> JobSpec:
    return one_size_spec(args, namespace, machine, _FLAGS)
