"""`arena submit sparkjob`: its flags and what they mean; `submit` does the work.

What a newcomer gets wrong: it has none of the other kinds' flags, and sizes of memory are Spark's (`500m` are 500 MiB).
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING

from fairlead.cli.frame.context import Context
from fairlead.cli.submit.flags import add_way_flags, many_flag, text_flag
from fairlead.cli.submit.submit import submit

if TYPE_CHECKING:
    from fairlead.kinds.parts.job_spec import JobSpec

NAME = "submit sparkjob"
HELP = "Submit a SparkApplication: a class in a jar, run by a driver and its executors."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(parser=parser)
    parser.add_argument("command", nargs="*", metavar="ARGUMENT", help="an argument of the main class")
    text_flag(parser, "--name", help="name of the job (required)")
    text_flag(parser, "--image", metavar="IMAGE", help="image of driver and executors (spark:VERSION)")
    text_flag(parser, "--replicas", default="1", metavar="N", help="how many executors")
    text_flag(parser, "--main-class", default="org.apache.spark.examples.SparkPi", metavar="CLASS", help="what is run")
    text_flag(parser, "--jar", metavar="URI", help="the jar that has it (Spark's examples, in the image)")
    text_flag(parser, "--spark-version", default="3.5.0", metavar="VERSION", help="version of Spark in the image")
    text_flag(parser, "--driver-cpu-request", default="1", metavar="N", help="cores of the driver")
    text_flag(parser, "--driver-memory-request", default="500m", metavar="SIZE", help="memory of the driver")
    text_flag(parser, "--driver-service-account", default="spark", metavar="NAME", help="service account of the driver, which makes pods")
    text_flag(parser, "--executor-cpu-request", default="1", metavar="N", help="cores of each executor")
    text_flag(parser, "--executor-memory-request", default="500m", metavar="SIZE", help="memory of each executor")
    many_flag(parser, "--annotation", "-a", metavar="KEY=VALUE", help="an annotation of the job and its pods")
    many_flag(parser, "--label", "-l", metavar="KEY=VALUE", help="a label of the job and its pods")
    add_way_flags(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    from fairlead.kinds.submission import Submission
    from fairlead.kinds.training import sparkjob

    return submit(args, context, Submission(sparkjob), spark_spec, needs_command=False)


def spark_spec(args: argparse.Namespace, namespace: str, config: Mapping[str, str]) -> JobSpec:
    from fairlead.cli.submit import values
    from fairlead.kinds.parts.job_spec import JobSpec
    from fairlead.kinds.training.sparkjob import SparkOptions

    executors = values.number("replicas", args.replicas)
    if executors < 1:
        raise values.invalid("WorkersMustMoreThanOne", f"--replicas is {executors}, and a job needs an executor")
    version = args.spark_version
    return JobSpec(
        name=values.job_name(args.name),
        namespace=namespace,
        image=args.image or f"spark:{version}",
        labels=values.labels("label", args.label),
        annotations=values.keyed("annotation", args.annotation),
        service_account=values.object_name("driver-service-account", args.driver_service_account),
        options=SparkOptions(
            main_class=args.main_class,
            jar=args.jar or f"local:///opt/spark/examples/jars/spark-examples_2.12-{version}.jar",
            version=values.labels("spark-version", [f"version={version}"])["version"],
            arguments=tuple(args.command),
            executors=executors,
            driver_cores=values.count("driver-cpu-request", args.driver_cpu_request, 1),
            driver_memory=_size("driver-memory-request", args.driver_memory_request),
            executor_cores=values.count("executor-cpu-request", args.executor_cpu_request, 1),
            executor_memory=_size("executor-memory-request", args.executor_memory_request),
        ),
    )


def _size(flag: str, text: str) -> str:
    """A size as Spark writes it, left as the person wrote it."""
    from fairlead.cli.submit.values import invalid
    from fairlead.wire.jobs.spark import parse_spark_size

    if not parse_spark_size(text):
        raise invalid(f"--{flag} is invalid: `{text}` is no size", "write it as `500m` or `2g`: Spark's sizes, in MiB and GiB")
    return text
