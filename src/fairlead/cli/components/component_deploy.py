"""`fairlead component deploy` (docs/spec/components.md#commands)."""

from __future__ import annotations

import argparse

from fairlead.cli.components.carried_out import change_component
from fairlead.cli.components.wanted import add_id, add_source, add_wait
from fairlead.cli.frame.context import Context

NAME = "component deploy"
HELP = """Deploy a component: all checks first; if one fails, nothing is written. Then an operation
runs, which another process can go on with (`fairlead operation resume`). A part of Fairlead is
written as by `fairlead upgrade` with its value in `parts`, or as by `fairlead install` if there is
no installation."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_id(parser)
    add_source(parser)
    add_wait(parser, "until it is ready")


def run(args: argparse.Namespace, context: Context) -> int:
    from fairlead.model.operations.operation import OperationKind

    return change_component(args, context, OperationKind.DEPLOY)
