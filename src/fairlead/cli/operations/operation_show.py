"""`fairlead operation show` (docs/spec/operations.md#commands)."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from fairlead.cli.frame.context import Context
from fairlead.cli.frame.documents import check_output
from fairlead.cli.operations.carried_out import add_id, found_operation, operations_of

if TYPE_CHECKING:
    from fairlead.model.operations.operation import Operation

NAME = "operation show"
HELP = """Show one operation with its steps."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_id(parser)
    parser.add_argument("--output", "-o", metavar="FORMAT", default="", help="json or yaml")


def run(args: argparse.Namespace, context: Context) -> int:
    check_output(args.output)
    operations = operations_of(context)
    found = found_operation(operations, args.id)
    if args.output in ("json", "yaml"):
        from fairlead.cli.frame.documents import printed_document
        from fairlead.wire.operations.document import operation_document

        context.stdout.write(printed_document(args.output, operation_document(found)))
    else:
        context.stdout.write(_page(found, operations.now()))
    return 0


def _page(operation: Operation, now: float) -> str:
    from fairlead.cli.frame.text import short_duration
    from fairlead.wire.text.tabwriter import render_rows
    from fairlead.wire.text.terminal_text import first_line

    facts = [
        ("Operation:", operation.id),
        ("Kind:", operation.kind.value),
        ("Subject:", operation.subject),
        ("State:", operation.state.value),
        ("By:", operation.created_by or "<unknown>"),
        ("Age:", short_duration(now - operation.created_at)),
        *([("Holder:", operation.holder)] if operation.holder else []),
        *([("Message:", operation.message)] if operation.message else []),
    ]
    rows = [("STEP", "STATE", "TOOK", "TITLE", "MESSAGE")]
    groups = (
        (operation.steps, operation.progress, ""),
        (operation.undo, operation.undo_progress, "undo "),
    )
    for steps, progress, word in groups:
        for number, (step, each) in enumerate(zip(steps, progress, strict=True), 1):
            took = ""
            if each.started_at is not None:
                took = short_duration((each.ended_at or now) - each.started_at)
            message = ": ".join(filter(None, (each.object, each.message)))
            message += f" ({each.event})" if each.event else ""
            rows.append((f"{word}{number}", each.state.value, took, step.title, message))
    page = render_rows([tuple(map(first_line, each)) for each in facts])
    return page + "\n" + render_rows([tuple(map(first_line, each)) for each in rows])
