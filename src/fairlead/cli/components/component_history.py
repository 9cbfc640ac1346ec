"""`fairlead component history` (docs/spec/components.md#commands)."""

from __future__ import annotations

import argparse

from fairlead.cli.components.wanted import add_id
from fairlead.cli.frame.context import Context
from fairlead.cli.frame.documents import check_output
from fairlead.cli.operations.carried_out import operations_of
from fairlead.cli.operations.operation_list import print_operations

NAME = "component history"
HELP = """List the operations of a component, the newest first. Records are kept for 7 days, the
newest 20 of each component at least."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_id(parser)
    parser.add_argument("--output", "-o", metavar="FORMAT", default="", help="json or yaml")


def run(args: argparse.Namespace, context: Context) -> int:
    check_output(args.output)
    from fairlead.rules.components.catalogue import component_of
    from fairlead.rules.components.state import component_ids

    component = component_of(args.id)
    operations = operations_of(context)
    found = [each for each in operations.list() if component.id in component_ids(each.subject)]
    print_operations(found, args, context, operations.now())
    return 0
