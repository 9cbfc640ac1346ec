"""`arena cron get CRON` shows one cron, the jobs that it made, when the next is due.

See docs/spec/arena-cli.md#crons.
"""

from __future__ import annotations

import argparse

from fairlead.cli.cron.search import add_cron, find_cron
from fairlead.cli.frame.context import Context
from fairlead.cli.frame.documents import check_output

NAME = "cron get"
HELP = "Show a cron and the jobs that it created."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_cron(parser)
    parser.add_argument("--output", "-o", metavar="FORMAT", default="", help="wide, json or yaml")


def run(args: argparse.Namespace, context: Context) -> int:
    check_output(args.output)
    cron = find_cron(context, args.cron)
    from fairlead.cli.cron.tables import cron_block, cron_document

    if args.output in ("json", "yaml"):
        from fairlead.cli.frame.documents import render_document

        context.stdout.write(render_document(args.output, cron_document(cron)))
    else:
        context.stdout.write(cron_block(cron))
    return 0
