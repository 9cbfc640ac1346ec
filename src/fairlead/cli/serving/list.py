"""`arena serve list` lists serving jobs, where they are, how many pods are up.

See docs/spec/arena-cli.md#serving-jobs.
"""

from __future__ import annotations

import argparse

from fairlead.cli.frame.context import Context
from fairlead.cli.frame.documents import check_output
from fairlead.cli.frame.flags import add_all_namespaces, tell_deprecations
from fairlead.cli.frame.object_names import warn_if_absent
from fairlead.cli.serving.search import add_type, read_servings

NAME = "serve list"
HELP = "List the serving jobs of a namespace: each version of a model with its address and ports."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_type(parser)
    add_all_namespaces(parser)
    parser.add_argument("--output", "-o", metavar="FORMAT", default="", help="wide, json or yaml")


def run(args: argparse.Namespace, context: Context) -> int:
    tell_deprecations(args, context.messages)
    check_output(args.output)
    found = read_servings(args, context, "" if args.all_namespaces else context.world.namespace())
    if not found.servings and not args.all_namespaces:
        warn_if_absent(context, context.world.namespace())
    from fairlead.rules.reports.serving import report_servings

    reports = report_servings(found)
    if args.output in ("json", "yaml"):
        from fairlead.cli.frame.documents import render_document
        from fairlead.cli.serving.tables import serving_document

        context.stdout.write(
            render_document(args.output, [serving_document(report) for report in reports])
        )
        return 0
    from fairlead.cli.serving.tables import list_table

    context.stdout.write(list_table(reports, has_namespace=args.all_namespaces))
    return 0
