"""`fairlead report MONTH` (docs/spec/usage.md#month-report)."""

from __future__ import annotations

import argparse

from fairlead.cli.frame.context import Context
from fairlead.cli.usage.sources import add_source, usage_source
from fairlead.errors import UserError

NAME = "report"
HELP = """Print the usage and cost of a month: by leaf, user and namespace, how the GPU money is
split by model, and the prices used. The bytes depend on the ledger and on --as-of alone."""
FORMATS = ("markdown", "csv", "json")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("month", metavar="MONTH", help="such as 2026-11")
    parser.add_argument(
        "--as-of",
        metavar="TIME",
        default="",
        help="prices that were entered later do not count; RFC 3339 with its zone",
    )
    parser.add_argument(
        "--output", "-o", metavar="FORMAT", default="markdown", help="markdown, csv or json"
    )
    add_source(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    if args.output not in FORMATS:
        raise UserError(
            f"the report has no format `{args.output[:40]}`", f"give one of {', '.join(FORMATS)}"
        )
    source = usage_source(args, context)
    context.stdout.write_bytes(source.report(args.month, args.as_of, args.output))
    return 0
