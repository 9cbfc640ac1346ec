"""`arena top job [JOB]` shows how the GPUs of training jobs are used.

See docs/spec/arena-cli.md#top-job; S13, S14.
"""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Final

from fairlead.cli.frame.context import ClusterJobs, Context
from fairlead.cli.frame.documents import check_output
from fairlead.cli.frame.flags import BooleanFlag, add_all_namespaces, tell_deprecations
from fairlead.cli.frame.object_names import warn_if_absent
from fairlead.cli.jobs.job_search import (
    add_type,
    check_sources,
    find_job,
    is_legacy,
    kinds_of,
    report_of,
    warn_of_pods,
    warn_of_readings,
)
from fairlead.errors import UserError

if TYPE_CHECKING:
    from fairlead.rules.reports.job import JobReport

NAME = "top job"
HELP = (
    "Show the GPU usage of training jobs: a table of all, or with JOB the GPUs of each of its pods."
)

_REFRESH_SECONDS: Final = 2.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("job", nargs="?", default="", metavar="JOB", help="one job, pod by pod")
    add_type(parser)
    add_all_namespaces(parser)
    parser.add_argument(
        "--instance", "-i", metavar="POD", default="", help="with JOB: only this pod"
    )
    parser.add_argument("--output", "-o", metavar="FORMAT", default="", help="wide, json or yaml")
    parser.add_argument(
        "--refresh", "-r", action=BooleanFlag, help="with JOB: repeat every 2 s until Ctrl-C"
    )
    parser.add_argument(
        "--resources",
        action=BooleanFlag,
        help="in the table: cpu and memory of pods on nodes, of the job's requests",
    )
    parser.add_argument("--legacy", action=BooleanFlag, help="the layout of arena 0.4")


def run(args: argparse.Namespace, context: Context) -> int:
    tell_deprecations(args, context.messages)
    check_output(args.output)
    if args.resources and (args.job or args.legacy):
        raise UserError(
            "`--resources` applies to the table of jobs", "leave out JOB and `--legacy`"
        )
    if args.refresh and not args.job:
        raise UserError(
            "you must specify the job name when using `-r` flag",
            "`arena top job` lists the names",
        )
    kinds_of(args.type)
    jobs, namespace = context.world.jobs(), context.world.namespace()
    if not args.job:
        return _show_all(args, context, jobs, "" if args.all_namespaces else namespace)
    while True:
        context.stdout.write(_one(args, context, jobs, namespace))
        if not args.refresh:
            return 0
        context.stdout.flush()
        context.sleep(_REFRESH_SECONDS)
        moment = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(context.now()))
        context.stdout.write(f"{'-' * 43}\n\n{moment}\n\n{'-' * 52}\n")


def _show_all(args: argparse.Namespace, context: Context, jobs: ClusterJobs, namespace: str) -> int:
    from fairlead.rules.reports.job import hungriest_first

    kinds, is_document = kinds_of(args.type), args.output in ("json", "yaml")
    found = jobs.read_jobs(kinds, namespace, with_readings=is_document)
    has_skipped = check_sources(found, kinds, args.type, namespace, context.messages)
    if not found.jobs:
        warn_if_absent(context, namespace)
    reports = hungriest_first(report_of(found))
    if is_document:
        warn_of_readings(found, reports, context.messages)
        context.stdout.write(_document(args.output, reports))
    elif is_legacy(args, context):
        from fairlead.cli.jobs.legacy_jobs import legacy_top

        context.stdout.write(legacy_top(reports, has_namespace=args.all_namespaces))
    else:
        from fairlead.cli.jobs.job_tables import top_table

        context.stdout.write(
            top_table(reports, has_namespace=args.all_namespaces, has_resources=args.resources)
        )
    return 1 if has_skipped and args.type else 0


def _one(args: argparse.Namespace, context: Context, jobs: ClusterJobs, namespace: str) -> str:
    found = find_job(jobs, args.job, namespace, args.type, with_readings=True)
    [report] = report_of(found)
    warn_of_pods(found, context.messages)
    warn_of_readings(found, [report], context.messages)
    instances = [
        instance for instance in report.instances if args.instance in ("", instance.pod.name)
    ]
    if args.instance and not instances:
        raise UserError(
            (
                f"invalid instance name {args.instance} in job {args.job},please use 'arena get "
                f"{args.job}' to make sure instance name"
            ),
            f"it has {', '.join(instance.pod.name for instance in report.instances) or 'no pods'}",
        )
    if args.output in ("json", "yaml"):
        return _document(args.output, [report], is_one=True)
    if is_legacy(args, context):
        from fairlead.cli.jobs.legacy_jobs import legacy_top_job

        return legacy_top_job(instances)
    from fairlead.cli.jobs.job_blocks import top_blocks

    return top_blocks(report, instances)


def _document(output: str, reports: list[JobReport], *, is_one: bool = False) -> str:
    from fairlead.cli.frame.documents import render_document
    from fairlead.cli.jobs.job_document import job_document

    documents = [job_document(report) for report in reports]
    return render_document(output, documents[0] if is_one else documents)
