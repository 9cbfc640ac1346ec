"""`fairlead group list` (docs/spec/people.md#commands)."""

from __future__ import annotations

import argparse

from fairlead.cli.frame.context import Context
from fairlead.cli.people.asked import add_output, group_document, people_of, print_rows

NAME = "group list"
HELP = "List the groups of users, by name, with the leaf and the users of each."
_HEADS = ("NAME", "GROUP", "LEAF", "NAMESPACES", "USERS", "STATE")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_output(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    record = people_of(context).read()
    groups = sorted(record.groups.values(), key=lambda each: each.name)
    members = {
        group.name: sorted(user.name for user in record.users.values() if group.name in user.groups)
        for group in groups
    }
    rows = [
        (
            group.name,
            group.group_name,
            group.leaf,
            ",".join(group.status.namespaces),
            ",".join(members[group.name]),
            group.status.ready.reason or "Pending",
        )
        for group in groups
    ]
    print_rows(args, context, _HEADS, rows, [group_document(group) for group in groups])
    return 0
