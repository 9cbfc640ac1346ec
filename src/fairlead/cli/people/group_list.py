"""`fairlead group list` (docs/spec/people.md#commands)."""

from __future__ import annotations

import argparse

from fairlead.cli.frame.context import Context
from fairlead.cli.people.asked import add_output, group_document, members_of, people_of, print_rows

NAME = "group list"
HELP = "List the groups of users, by name, with the leaf and the users of each."
_HEADS = ("NAME", "GROUP", "LEAF", "NAMESPACES", "USERS", "STATE", "ROLES", "MESSAGE")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_output(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    record = people_of(context).read()
    groups = sorted(record.groups.values(), key=lambda each: each.name)
    rows = [
        (
            group.name,
            group.group_name,
            group.leaf,
            ",".join(group.status.namespaces),
            ",".join(members_of(group, record)),
            group.status.ready.reason or "Pending",
            ",".join((*group.default_roles, *group.default_cluster_roles)),
            group.status.ready.message,
        )
        for group in groups
    ]
    print_rows(args, context, _HEADS, rows, [group_document(group) for group in groups], wide=2)
    return 0
