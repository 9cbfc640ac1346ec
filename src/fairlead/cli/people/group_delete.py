"""`fairlead group delete NAME…` (docs/spec/people.md#commands)."""

from __future__ import annotations

import argparse

from fairlead.cli.frame.context import Context
from fairlead.cli.people.asked import find_group, people_of, refuse
from fairlead.errors import FairleadError

NAME = "group delete"
HELP = "Delete groups of users. It is refused while a user lists the group."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("groups", nargs="+", metavar="NAME", help="the names of the groups")


def run(args: argparse.Namespace, context: Context) -> int:
    from fairlead.rules.people.refusals import group_deletion_refusal

    people, status = people_of(context), 0
    for name in dict.fromkeys(args.groups):
        try:
            record = people.read()
            group = find_group(record, name)
            refuse(f"group {group.name} is not deleted", group_deletion_refusal(group, record))
            people.delete_group(group)
            context.stdout.write(f"group {group.name} deleted\n")
        except FairleadError as error:
            context.messages.error(error.what, error.hint)
            status = 1
    return status
