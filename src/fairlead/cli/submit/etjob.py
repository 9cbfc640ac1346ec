"""`arena submit etjob`: its flags and what they mean; `submit` does the work."""

from __future__ import annotations

import argparse
from typing import Final

from msgspec.structs import replace

from fairlead.cli.frame import values
from fairlead.cli.frame.context import Context, Machine
from fairlead.cli.frame.flags import text, truth
from fairlead.cli.submit.elastic import ELASTIC, elastic_spec
from fairlead.cli.submit.spec import add_job_flags
from fairlead.cli.submit.submit import SubmitVerb, submit
from fairlead.kinds.parts.elastic_training import ElasticOptions
from fairlead.kinds.parts.job_spec import JobSpec
from fairlead.wire import names

NAME = "submit etjob"
HELP = (
    "Submit an elastic training job: a launcher that runs the command, "
    "and a variable number of workers."
)

_WORKER_RESTARTS: Final = ("", "Never", "OnFailure", "Always", "ExitCode")
_FLAGS: Final = (
    *ELASTIC,
    text(
        "--max-workers",
        default="1000",
        metavar="N",
        help="greatest number of workers after scaling out",
    ),
    text(
        "--min-workers", default="1", metavar="N", help="least number of workers after scaling in"
    ),
    truth("--spot-instance", help="run on spot instances, under the job supervisor"),
    text(
        "--max-wait-time",
        default="0",
        metavar="SECONDS",
        help="give up after this time without spot instances",
    ),
    text("--worker-restart-policy", metavar="POLICY", help="Never, OnFailure, Always or ExitCode"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_job_flags(parser, _FLAGS)


def run(args: argparse.Namespace, context: Context) -> int:
    return submit(args, context, what())


def what() -> SubmitVerb:
    from fairlead.kinds.submission import Submission
    from fairlead.kinds.training import etjob

    return SubmitVerb(Submission(etjob), et_spec)


def et_spec(args: argparse.Namespace, namespace: str, machine: Machine) -> JobSpec:
    least, most = (
        values.count("min-workers", args.min_workers, 1),
        values.count("max-workers", args.max_workers, 1),
    )
    workers = values.count("workers", args.workers, 1)
    if not least <= workers <= most:
        raise values.invalid(
            f"--workers is invalid: {workers} is not between --min-workers {least} and "
            f"--max-workers {most}"
        )
    wait = values.count("max-wait-time", args.max_wait_time)
    restart = values.word("worker-restart-policy", args.worker_restart_policy, _WORKER_RESTARTS)
    spec = elastic_spec(args, namespace, machine, _FLAGS)
    spot = {names.ANNOTATION_SPOT: "true"} if args.spot_instance else {}
    waiting = {names.ANNOTATION_SPOT_WAIT: str(wait)} if wait else {}
    assert isinstance(spec.options, ElasticOptions)
    return replace(
        spec,
        env={"maxWorkers": str(most), "minWorkers": str(least), **spec.env},
        annotations={**spot, **waiting, **spec.annotations},
        options=replace(spec.options, min_workers=least, max_workers=most, worker_restart=restart),
    )
