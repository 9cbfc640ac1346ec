"""`fairlead prices list` (docs/spec/usage.md#prices)."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from fairlead.cli.frame.context import Context
from fairlead.cli.usage.sources import add_source, usage_source
from fairlead.cli.usage.tables import (
    NOTHING,
    add_output,
    amount,
    is_table,
    money,
    percent,
    print_list,
    print_table,
    warn,
)

if TYPE_CHECKING:
    from fairlead.console.pages.usage.prices import PriceClassRow, PriceRow

NAME = "prices list"
HELP = """List the prices of nodes, the newest entry first, and the classes of nodes that a price
can match. A class without a price has `-`."""
_HEADS = ("ID", "NODES", "PER-HOUR", "LIST", "GPU-SHARE", "FROM", "ENTERED", "NOW")
_WIDE = ("BY", "NOTE")
_CLASS_HEADS = ("NODES", "GPUS", "CORES", "MEMORY(MiB)", "NODE-HOURS", "PRICE")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_output(parser)
    add_source(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    from fairlead.console.pages.usage.prices import PriceRow

    table = is_table(args)
    answer = usage_source(args, context).prices()
    warn(context, answer.warnings)
    if not table:
        print_list(args, context, answer, PriceRow)
        return 0
    if answer.currency:
        context.stdout.write(f"Prices in {answer.currency}, days in {answer.zone}\n\n")
    wide = 0 if args.output == "wide" else len(_WIDE)
    print_table(context, (*_HEADS, *_WIDE), [price_cells(row) for row in answer.items], wide)
    context.stdout.write("\nClasses of nodes in the last 90 days\n")
    print_table(context, _CLASS_HEADS, [_class_cells(row) for row in answer.classes])
    return 0


def price_cells(row: PriceRow) -> tuple[str, ...]:
    return (
        str(row.id),
        labels_text(row.matcher),
        "ended" if row.ended else money(row.node_hour),
        money(row.list_node_hour),
        percent(row.gpu_share_percent),
        row.valid_from,
        row.entered_at,
        "yes" if row.in_force else "no",
        row.entered_by or NOTHING,
        row.note or NOTHING,
    )


def _class_cells(row: PriceClassRow) -> tuple[str, ...]:
    return (
        labels_text(row.labels),
        amount(row.gpus),
        amount(row.cores),
        amount(row.memory_mib),
        amount(row.node_hours),
        NOTHING if row.price is None else str(row.price),
    )


def labels_text(labels: dict[str, str]) -> str:
    """
    >>> labels_text({"gpu-model": "A100"}), labels_text({})
    ('gpu-model=A100', 'every node')
    """
    return ",".join(f"{key}={value}" for key, value in labels.items()) or "every node"
