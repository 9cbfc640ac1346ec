"""`fairlead operation follow` (docs/spec/operations.md#commands)."""

from __future__ import annotations

import argparse
from typing import Final

from fairlead.cli.frame.context import Context
from fairlead.cli.operations.carried_out import (
    StepLines,
    add_id,
    found_operation,
    operations_of,
    show_end,
)
from fairlead.errors import UserError

NAME = "operation follow"
HELP = """Print the steps of an operation as they go on, until it has ended.

The exit status is 1 unless it succeeds. It only watches; Ctrl-C ends the watching."""

_LOOK_SECONDS: Final = 1.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_id(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    operations = operations_of(context)
    from fairlead.model.operations.operation import OperationState

    lines = StepLines(context)
    while True:
        found = found_operation(operations, args.id)
        if found.state is OperationState.PLANNED:
            raise UserError(f"operation `{args.id}` is a plan that has not begun")
        lines(found)
        if found.state.is_ended:
            break
        context.sleep(_LOOK_SECONDS)
    show_end(found, context)
    context.stdout.write(f"{found.subject}: done\n")
    return 0
