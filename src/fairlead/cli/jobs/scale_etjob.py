"""`arena scaleout etjob` and `arena scalein etjob`: more or fewer workers for an elastic job that
runs (docs/spec/arena-cli.md#scale-out-and-scale-in).

What the two verbs share: flags, checks, messages. What they do differs in a sign and in the object
that is made.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

from fairlead.cli.frame.context import Context
from fairlead.cli.frame.flags import many_flag, text_flag, truth_flag
from fairlead.cli.jobs.job_search import find_job, report_of, warn_of_pods
from fairlead.errors import UserError
from fairlead.model.actions import CreateObject, Result

if TYPE_CHECKING:
    from fairlead.kinds.parts.elastic_scaling import Scaling, ScalingSpec
    from fairlead.rules.reports.job import JobReport

_TYPE: Final = "etjob"
_SCALABLE: Final = ("RUNNING", "SCALING")


def add_scale_flags(parser: argparse.ArgumentParser, script: str) -> None:
    text_flag(parser, "--name", help="name of the job (required)")
    text_flag(parser, "--count", default="1", metavar="N", help="how many workers (default 1)")
    text_flag(
        parser,
        "--timeout",
        "-t",
        default="60s",
        metavar="TIME",
        help="how long the script may take (default 60s)",
    )
    text_flag(parser, "--retry", default="0", metavar="N", help="how often it is tried again")
    text_flag(
        parser,
        "--script",
        default=script,
        metavar="COMMAND",
        help=f"command that notifies the program, in its launcher (default `{script}`)",
    )
    many_flag(
        parser, "--env", "-e", metavar="NAME=VALUE", help="an environment variable of the script"
    )
    truth_flag(parser, "--dry-run", help="print the object as YAML and create nothing")


def scale(args: argparse.Namespace, context: Context, scaling: Scaling) -> int:
    from fairlead.cli.submit.submit import check_text, created_line, no_cluster, print_objects
    from fairlead.kinds.parts.elastic_scaling import scaling_object

    check_text(args.words)
    spec = _spec(args, context)
    cluster = context.world.objects()
    if cluster is None:
        raise no_cluster()
    found = find_job(context.world.jobs(), args.name, context.world.namespace(), _TYPE)
    warn_of_pods(found, context.messages)
    [report] = report_of(found)
    _check(report, scaling, spec.count)
    manifest = scaling_object(scaling, report.job, spec)
    if args.dry_run:
        return print_objects(context, [manifest])
    made = cluster.apply(CreateObject(manifest, report.job.namespace)).expect(Result.THERE).made
    word = scaling.kind.lower()
    if made is None:
        raise UserError(
            f"the {word} job {spec.name} exists already", "one can be created each second"
        )
    context.stdout.write(created_line(made))
    context.stdout.flush()
    context.messages.info(f"The {word} job {spec.name} has been submitted successfully")
    return 0


def _spec(args: argparse.Namespace, context: Context) -> ScalingSpec:
    from fairlead.cli.frame import values
    from fairlead.kinds.parts.elastic_scaling import ScalingSpec

    values.job_name(args.name, may_begin_with_digit=True)
    return ScalingSpec(
        name=f"{args.name}-{int(context.now())}",
        count=values.count("count", args.count, 1),
        script=args.script,
        env=values.env("env", args.env),
        retry=values.count("retry", args.retry),
        timeout_seconds=values.seconds("timeout", args.timeout) or 0,
    )


def _check(report: JobReport, scaling: Scaling, count: int) -> None:
    from fairlead.kinds.parts.elastic_scaling import OUT, WORKER, bounds

    name, least_most = report.job.name, bounds(report.job)
    if report.status not in _SCALABLE:
        raise UserError(
            f"the job: {name} status: {report.status} , "
            "is not RUNNING or SCALING, please try again later"
        )
    workers = sum(
        1 for each in report.instances if each.role == WORKER and not each.pod.is_finished
    )
    if scaling is OUT and workers + count > least_most[1]:
        why = "the number of scaling out plus the number of current workers exceeds the max-workers"
        raise UserError(
            f"{why}. please try again later.",
            f"{workers} + {count} is more than {least_most[1]}",
        )
    if scaling is not OUT and workers - count < least_most[0]:
        why = (
            "the number of current workers minus the number of "
            "scaling in is less than the min-workers"
        )
        raise UserError(
            f"{why}. please try again later.",
            f"{workers} - {count} is less than {least_most[0]}",
        )
