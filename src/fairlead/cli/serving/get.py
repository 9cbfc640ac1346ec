"""`arena serve get JOB` shows one serving job, pod by pod (docs/spec/arena-cli.md#serving-jobs)."""

from __future__ import annotations

import argparse

from fairlead.cli.frame.context import Context
from fairlead.cli.frame.documents import check_output
from fairlead.cli.serving.search import add_type, add_version, find_serving

NAME = "serve get"
HELP = "Show one serving job: its address, its ports and its pods."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("job", metavar="SERVING_JOB", help="the job's name")
    add_type(parser)
    add_version(parser)
    parser.add_argument("--output", "-o", metavar="FORMAT", default="", help="wide, json or yaml")


def run(args: argparse.Namespace, context: Context) -> int:
    check_output(args.output)
    found = find_serving(args, context, args.job)
    from fairlead.rules.reports.serving import report_servings

    [report] = report_servings(found)
    if args.output in ("json", "yaml"):
        from fairlead.cli.frame.documents import render_document
        from fairlead.cli.serving.tables import serving_document

        context.stdout.write(render_document(args.output, serving_document(report)))
        return 0
    from fairlead.cli.serving.tables import get_block

    context.stdout.write(get_block(report))
    return 0
