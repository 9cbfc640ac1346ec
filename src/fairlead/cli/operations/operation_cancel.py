"""`fairlead operation cancel` (docs/spec/operations.md#commands)."""

from __future__ import annotations

import argparse

from fairlead.cli.frame.context import Context
from fairlead.cli.operations.carried_out import add_id, operations_of

NAME = "operation cancel"
HELP = """Ask the process at work to end an operation before its next step, and to undo it.

If no process is at work, `fairlead operation resume` ends and undoes it."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_id(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    asked = operations_of(context).cancel(args.id)
    word = "cancelled" if asked.state.is_ended else "will end before its next step"
    context.stdout.write(f"operation `{asked.id}` {word}\n")
    return 0
