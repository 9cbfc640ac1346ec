"""`fairlead group create NAME` (docs/spec/people.md#commands)."""

from __future__ import annotations

import argparse

from fairlead.cli.frame.context import Context
from fairlead.cli.people.asked import (
    add_output,
    group_document,
    is_document,
    people_of,
    print_written,
    refuse,
)
from fairlead.errors import UserError

NAME = "group create"
HELP = """Create a group of users on a leaf of the quota tree. Its users get the namespaces of the
leaf. A leaf has one group at most, and a group keeps its leaf."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="1 to 63 of 0-9, a-z, A-Z and -")
    parser.add_argument(
        "--leaf", metavar="LEAF", required=True, help="the full name of the leaf, e.g. root.a.1"
    )
    add_output(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    from fairlead.model.people.rows import UserGroup
    from fairlead.model.refusal import Refusal
    from fairlead.rules.people.ids import group_id
    from fairlead.rules.people.refusals import group_change_refusal, group_refusal
    from fairlead.settings import USERS_NAMESPACE

    is_document(args)
    people = people_of(context)
    record = people.read()
    name = group_id(args.name, record.groups)
    if isinstance(name, Refusal):
        raise UserError(f"the group is not created: {name.reason}", "choose another name")
    group = UserGroup(name, USERS_NAMESPACE, group_name=args.name, leaf=args.leaf)
    refuse(
        "the group is not created",
        group_refusal(group, record) or group_change_refusal(group, record),
    )
    people.create_group(group)
    print_written(args, context, f"group {name} created", group_document(group))
    return 0
