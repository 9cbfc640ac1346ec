"""`fairlead usage` (docs/spec/usage.md#usage)."""

from __future__ import annotations

import argparse

from fairlead.cli.frame.context import Context
from fairlead.cli.usage.sources import add_source, usage_source
from fairlead.cli.usage.tables import (
    FIGURE_HEADS,
    NOTHING,
    add_output,
    add_period,
    figure_cells,
    is_table,
    period_words,
    print_list,
    print_period,
    print_table,
    warn,
)

NAME = "usage"
HELP = """Print what users, namespaces, quota leaves, jobs or GPU models used in a time, and what it
cost. The usage recorder must run; a researcher sees the own namespaces."""
BY = ("user", "namespace", "leaf", "job", "model")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--by", metavar="WORD", default="user", help=", ".join(BY))
    add_period(parser)
    add_output(parser)
    add_source(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    from fairlead.console.pages.usage.tables import UsageRow

    table = is_table(args)
    answer = usage_source(args, context).usage({"by": args.by, **period_words(args)})
    warn(context, answer.warnings)
    if not table:
        print_list(args, context, answer, UsageRow)
        return 0
    print_period(context, answer.period, answer.currency)
    is_job = answer.by == "job"
    heads = (answer.by.upper(), *(("NAMESPACE", "TYPE") if is_job else ()), *FIGURE_HEADS)
    rows = [
        (
            row.name or NOTHING,
            *((row.namespace, row.type or NOTHING) if is_job else ()),
            *figure_cells(row),
        )
        for row in answer.items
    ]
    rows.append(("TOTAL", *(("", "") if is_job else ()), *figure_cells(answer.totals)))
    print_table(context, heads, rows)
    for each in answer.unpriced if answer.currency else ():
        labels = ",".join(f"{key}={value}" for key, value in each.labels.items()) or "no labels"
        context.messages.warn(f"{each.node_hours:g} node-hours without a price: {labels}")
    return 0
