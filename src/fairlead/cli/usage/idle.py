"""`fairlead idle` (docs/spec/usage.md#idle)."""

from __future__ import annotations

import argparse

from fairlead.cli.frame.context import Context
from fairlead.cli.usage.sources import add_source, usage_source
from fairlead.cli.usage.tables import (
    NOTHING,
    add_output,
    add_period,
    amount,
    is_table,
    money,
    period_words,
    print_list,
    print_period,
    print_table,
    warn,
)

NAME = "idle"
HELP = """Print which GPUs cost money while nothing runs on them: since when, why, and what to do.
With `-o wide` also how the GPU money of each node is split."""
_HEADS = (
    *("REASON", "OWNER", "POD", "NODE", "MODEL", "GPUS", "SINCE", "GPU-HOURS", "COST"),
    "WHAT TO DO",
)
_PARTS = ("used", "idle", "unknown", "free", "stranded", "broken")
_NODE_HEADS = ("NODE", "MODEL", "GPU-HOURS", "COST", *(part.upper() for part in _PARTS))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_period(parser)
    add_output(parser)
    add_source(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    from fairlead.console.pages.usage.tables import IdleRow

    table = is_table(args)
    answer = usage_source(args, context).idle(period_words(args))
    warn(context, answer.warnings)
    if not table:
        print_list(args, context, answer, IdleRow)
        return 0
    print_period(context, answer.period, answer.currency)
    rows = [
        (
            row.reason,
            row.user or row.namespace or NOTHING,
            f"{row.namespace}/{row.pod}" if row.pod else NOTHING,
            row.node,
            row.model or NOTHING,
            amount(row.gpus),
            row.since or NOTHING,
            amount(row.gpu_hours),
            money(row.cost),
            row.advice.text,
        )
        for row in answer.items
    ]
    print_table(context, _HEADS, rows)
    if args.output == "wide":
        context.stdout.write("\nGPU money by node (GPU-hours where there is no price)\n")
        print_table(context, _NODE_HEADS, [_node_cells(each) for each in answer.nodes])
    return 0


def _node_cells(row: object) -> tuple[str, ...]:
    from fairlead.console.pages.usage.tables import NodeGpuMoney

    assert isinstance(row, NodeGpuMoney)
    parts = [
        amount(getattr(row, f"{part}_gpu_hours"))
        if row.cost is None
        else money(getattr(row, f"{part}_cost"))
        for part in _PARTS
    ]
    return (row.node, row.model or NOTHING, amount(row.gpu_hours), money(row.cost), *parts)
