"""`fairlead prices end` (docs/spec/usage.md#prices)."""

from __future__ import annotations

import argparse

from fairlead.cli.frame.context import Context
from fairlead.cli.usage.price_add import add_matcher, parse_match
from fairlead.cli.usage.price_list import labels_text
from fairlead.cli.usage.sources import add_source, usage_source

NAME = "prices end"
HELP = """End the prices of a matcher from the beginning of a day on. From then on another matcher
that fits counts, or no price; nothing is removed."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_matcher(parser)
    parser.add_argument("--note", metavar="TEXT", default="", help="why, for later readers")
    add_source(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    from fairlead.console.pages.usage.prices import PriceOrder

    order = PriceOrder(
        matcher=parse_match(args.match), valid_from=args.valid_from, note=args.note, ended=True
    )
    row = usage_source(args, context).add_price(order).price
    context.stdout.write(f"prices of {labels_text(row.matcher)} end at {row.valid_from}\n")
    return 0
