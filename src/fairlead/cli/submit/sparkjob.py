"""`arena submit sparkjob`: its flags, and what they mean; `submit` does the work.

It has none of the other kinds' flags, and sizes of memory are Spark's (`500m` are 500 MiB).
"""

from __future__ import annotations

import argparse
from typing import Final

from fairlead.cli.frame import values
from fairlead.cli.frame.context import Context, Machine
from fairlead.cli.frame.flags import read_flags, text
from fairlead.cli.submit.spec import CREATION_FLAGS, LABELLED, add_job_flags
from fairlead.cli.submit.submit import SubmitVerb, submit
from fairlead.kinds.parts.job_spec import JobSpec

NAME = "submit sparkjob"
HELP = "Submit a SparkApplication: a class in a jar, run by a driver and its executors."


def _size(flag: str, given: str) -> str:
    """A size as Spark writes it, left as the person wrote it."""
    from fairlead.wire.jobs.spark import parse_spark_size

    if not parse_spark_size(given):
        raise values.invalid(
            f"--{flag} is invalid: `{given}` is not a size",
            "write it as `500m` or `2g`: Spark's sizes, in MiB and GiB",
        )
    return given


def _cores(flag: str, given: str) -> int:
    return values.count(flag, given, 1)


_ACCOUNT: Final = "service account of the driver, which makes pods"
_OPTIONS: Final = (
    text("--name", help="name of the job (required)"),
    text("--image", metavar="IMAGE", help="image of driver and executors (spark:VERSION)"),
    text("--replicas", default="1", metavar="N", help="how many executors"),
    text(
        "--main-class",
        "main_class",
        default="org.apache.spark.examples.SparkPi",
        metavar="CLASS",
        help="class to run",
    ),
    text(
        "--jar", metavar="URI", help="jar with the class (default: Spark's examples in the image)"
    ),
    text(
        "--spark-version",
        default="3.5.0",
        metavar="VERSION",
        help="version of Spark in the image",
    ),
    text(
        "--driver-cpu-request",
        "driver_cores",
        _cores,
        default="1",
        metavar="N",
        help="cores of the driver",
    ),
    text(
        "--driver-memory-request",
        "driver_memory",
        _size,
        default="500m",
        metavar="SIZE",
        help="memory of the driver",
    ),
    text("--driver-service-account", default="spark", metavar="NAME", help=_ACCOUNT),
    text(
        "--executor-cpu-request",
        "executor_cores",
        _cores,
        default="1",
        metavar="N",
        help="cores of each executor",
    ),
    text(
        "--executor-memory-request",
        "executor_memory",
        _size,
        default="500m",
        metavar="SIZE",
        help="memory of each executor",
    ),
)
"""Those with a field are `SparkOptions`."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_job_flags(
        parser, (*_OPTIONS, *LABELLED, *CREATION_FLAGS), "an argument of the main class", "ARGUMENT"
    )


def run(args: argparse.Namespace, context: Context) -> int:
    return submit(args, context, what())


def what() -> SubmitVerb:
    from fairlead.kinds.submission import Submission
    from fairlead.kinds.training import sparkjob

    return SubmitVerb(Submission(sparkjob), spark_spec, needs_command=False)


def spark_spec(args: argparse.Namespace, namespace: str, machine: Machine) -> JobSpec:
    from fairlead.kinds.training.sparkjob import SparkOptions

    executors = values.number("replicas", args.replicas)
    if executors < 1:
        raise values.invalid(
            "WorkersMustMoreThanOne", f"--replicas is {executors}, and a job needs an executor"
        )
    version = args.spark_version
    return JobSpec(
        name=values.job_name(args.name),
        namespace=namespace,
        image=args.image or f"spark:{version}",
        service_account=values.object_name("driver-service-account", args.driver_service_account),
        options=SparkOptions(
            jar=args.jar or f"local:///opt/spark/examples/jars/spark-examples_2.12-{version}.jar",
            version=values.labels("spark-version", [f"version={version}"])["version"],
            arguments=tuple(args.command),
            executors=executors,
            **read_flags(args, _OPTIONS),
        ),
        **read_flags(args, LABELLED),
    )
