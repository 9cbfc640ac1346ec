"""`arena cron list` lists the schedules that make jobs (docs/spec/arena-cli.md#crons)."""

from __future__ import annotations

import argparse

from fairlead.cli.cron.search import crons_of
from fairlead.cli.frame.context import Context
from fairlead.cli.frame.documents import check_output
from fairlead.cli.frame.flags import add_all_namespaces, report_deprecations
from fairlead.cli.frame.object_names import warn_if_absent

NAME = "cron list"
HELP = "List the crons of a namespace, by name."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_all_namespaces(parser)
    parser.add_argument("--output", "-o", metavar="FORMAT", default="", help="wide, json or yaml")


def run(args: argparse.Namespace, context: Context) -> int:
    report_deprecations(args, context.messages)
    check_output(args.output)
    crons = crons_of(context).read_crons("" if args.all_namespaces else context.world.namespace())
    if not crons and not args.all_namespaces:
        warn_if_absent(context, context.world.namespace())
    from fairlead.cli.cron.tables import cron_document, crons_table

    if args.output in ("json", "yaml"):
        from fairlead.cli.frame.documents import render_document

        context.stdout.write(render_document(args.output, [cron_document(cron) for cron in crons]))
    else:
        context.stdout.write(crons_table(crons, has_namespace=args.all_namespaces))
    return 0
