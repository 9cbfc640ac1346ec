"""`fairlead operation resume` (docs/spec/operations.md#commands)."""

from __future__ import annotations

import argparse

from fairlead.cli.frame.context import Context
from fairlead.cli.operations.carried_out import StepLines, add_id, operations_of, show_end

NAME = "operation resume"
HELP = """Go on with an operation that its process left, or try a failed or cancelled one again.

This process carries it out, as the user of this command. If another process is at work, it refuses
within a few seconds. If that process is dead, it waits until its Lease has ended, 30 seconds."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_id(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    done = operations_of(context).resume(args.id, StepLines(context))
    show_end(done, context)
    context.stdout.write(f"{done.subject}: done\n")
    return 0
