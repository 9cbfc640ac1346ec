"""`fairlead operation list` (docs/spec/operations.md#commands)."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fairlead.cli.frame.context import Context
from fairlead.cli.frame.documents import check_output
from fairlead.cli.operations.carried_out import operations_of

if TYPE_CHECKING:
    from fairlead.model.operations.operation import Operation

NAME = "operation list"
HELP = """List operations: what was begun on data sets and components, and how it ended.

An operation that runs without a holder was left by its process; `fairlead operation resume` goes
on with it."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--output", "-o", metavar="FORMAT", default="", help="json or yaml")


def run(args: argparse.Namespace, context: Context) -> int:
    check_output(args.output)
    operations = operations_of(context)
    print_operations(operations.list(), args, context, operations.now())
    return 0


def print_operations(
    found: Sequence[Operation], args: argparse.Namespace, context: Context, now: float
) -> None:
    """A table, or documents."""
    if args.output in ("json", "yaml"):
        from fairlead.cli.frame.documents import printed_document
        from fairlead.wire.operations.document import operation_document

        context.stdout.write(
            printed_document(args.output, [operation_document(each) for each in found])
        )
    else:
        context.stdout.write(_table(found, now))


def _table(found: Sequence[Operation], now: float) -> str:
    from fairlead.cli.frame.text import short_duration
    from fairlead.rules.operations.progress import step_in_hand
    from fairlead.wire.text.tabwriter import render_rows
    from fairlead.wire.text.terminal_text import first_line

    table: list[tuple[str, ...]] = [("ID", "KIND", "SUBJECT", "STATE", "STEP", "BY", "AGE")]
    for each in found:
        cells = (
            each.id,
            each.kind.value,
            each.subject,
            each.state.value,
            step_in_hand(each),
            each.created_by,
            short_duration(now - each.created_at),
        )
        table.append(tuple(first_line(cell) for cell in cells))
    return render_rows(table)
