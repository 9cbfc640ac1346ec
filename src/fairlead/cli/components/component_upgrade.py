"""`fairlead component upgrade` (docs/spec/components.md#commands)."""

from __future__ import annotations

import argparse

from fairlead.cli.components.carried_out import change_component
from fairlead.cli.components.wanted import add_id, add_source, add_wait
from fairlead.cli.frame.context import Context

NAME = "component upgrade"
HELP = """Upgrade a component, or change its values: all checks first; if one fails, nothing is
written. A Helm release goes back to its last deployed revision if the upgrade fails. With a part of
Fairlead the whole installation comes to the version of this program, as by `fairlead upgrade`."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_id(parser)
    add_source(parser)
    add_wait(parser, "until it is ready")


def run(args: argparse.Namespace, context: Context) -> int:
    from fairlead.model.operations.operation import OperationKind

    return change_component(args, context, OperationKind.UPGRADE)
