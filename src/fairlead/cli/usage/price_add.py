"""`fairlead prices add` (docs/spec/usage.md#prices)."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from fairlead.cli.frame.context import Context
from fairlead.cli.usage.price_list import labels_text
from fairlead.cli.usage.sources import add_source, usage_source
from fairlead.errors import UserError

NAME = "prices add"
HELP = """Enter the price of nodes from the beginning of a day on. A price is never changed: enter
another one, also for a time that is over."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add_matcher(parser)
    add("--price", metavar="AMOUNT", required=True, help="price per node-hour, such as 28.5")
    add("--list-price", metavar="AMOUNT", default="", help="list price per node-hour")
    add("--currency", metavar="CODE", default="", help="such as EUR (default: that of the others)")
    add(
        "--gpu-share",
        metavar="PERCENT",
        default="",
        help="part of the price that is for the GPUs (default: 90 where there are GPUs)",
    )
    add("--note", metavar="TEXT", default="", help="why, for later readers")
    add_source(parser)


def add_matcher(parser: argparse.ArgumentParser) -> None:
    """The nodes, and the first day."""
    parser.add_argument(
        "--match",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="label of the nodes, or gpu-model=…; several must all match; without: every node",
    )
    parser.add_argument(
        "--valid-from",
        metavar="DAY",
        required=True,
        help="first day, such as 2026-11-01; days begin at midnight of the billing time zone",
    )


def run(args: argparse.Namespace, context: Context) -> int:
    from fairlead.console.pages.usage.prices import PriceOrder

    order = PriceOrder(
        matcher=parse_match(args.match),
        valid_from=args.valid_from,
        currency=args.currency,
        node_hour=args.price,
        list_node_hour=args.list_price,
        gpu_share_percent=_share(args.gpu_share),
        note=args.note,
    )
    written = usage_source(args, context).add_price(order)
    for each in written.warnings:
        context.messages.warn(each.text)
    row = written.price
    context.stdout.write(
        f"price {row.id}: {labels_text(row.matcher)} costs {row.node_hour} {row.currency} per "
        f"hour from {row.valid_from}\n"
    )
    return 0


def parse_match(words: Sequence[str]) -> dict[str, str]:
    """Raises UserError for a word that is no KEY=VALUE, and for a key that is given twice."""
    found: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not (key and equals and value):
            raise UserError(f"--match `{word[:100]}` is malformed", "write it as gpu-model=A100")
        if key in found:
            raise UserError(f"--match names `{key[:100]}` twice", "give each label once")
        found[key] = value
    return found


def _share(text: str) -> float | None:
    if not text:
        return None
    try:
        return float(text.removesuffix("%"))
    except ValueError as error:
        hint = "give a percentage from 0 to 100"
        raise UserError(f"--gpu-share `{text[:40]}` is no number", hint) from error
