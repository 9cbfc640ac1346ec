"""`fairlead component remove` (docs/spec/components.md#commands)."""

from __future__ import annotations

import argparse

from fairlead.cli.components.carried_out import change_component
from fairlead.cli.components.wanted import add_id, add_wait
from fairlead.cli.frame.context import Context
from fairlead.cli.frame.flags import BooleanFlag

NAME = "component remove"
HELP = """Remove a component that Fairlead deployed: only what its inventory or its Helm release
lists. Its definitions (CRDs) stay with all objects of their kinds, unless --delete-definitions is
given. Checks come first: components that need it, objects of its kinds, finalizers."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_id(parser)
    parser.add_argument(
        "--delete-definitions",
        action=BooleanFlag,
        help="delete its definitions (CRDs), too, if no object of their kinds is left",
    )
    add_wait(parser, "until it is gone")


def run(args: argparse.Namespace, context: Context) -> int:
    from fairlead.model.operations.operation import OperationKind

    return change_component(args, context, OperationKind.REMOVE)
