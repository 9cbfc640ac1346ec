"""`fairlead component deploy` (docs/spec/components.md#commands)."""

from __future__ import annotations

import argparse

from fairlead.cli.components.carried_out import change_component
from fairlead.cli.components.several import add_ids, add_sources, args_of, deploy_several
from fairlead.cli.components.wanted import add_wait
from fairlead.cli.frame.context import Context

NAME = "component deploy"
HELP = """Deploy components: all checks first; if one fails, nothing is written. Then an operation
runs for each, in the order of what they need, which another process can go on with (`fairlead
operation resume`). Parts of Fairlead are written as by `fairlead upgrade` with their values in
`parts`, or as by `fairlead install` if there is no installation."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_ids(parser)
    add_sources(parser)
    add_wait(parser, "until it is ready")


def run(args: argparse.Namespace, context: Context) -> int:
    from fairlead.model.operations.operation import OperationKind

    if len(args.id) > 1:
        return deploy_several(args, context)
    (own,) = args_of(args, args.id)
    return change_component(own, context, OperationKind.DEPLOY)
