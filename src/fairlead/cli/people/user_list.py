"""`fairlead user list` (docs/spec/people.md#commands)."""

from __future__ import annotations

import argparse

from fairlead.cli.frame.context import Context
from fairlead.cli.people.asked import add_output, people_of, print_rows, state_of, user_document

NAME = "user list"
HELP = "List the users of the cluster, by id."
_HEADS = ("ID", "NAME", "ROLES", "GROUPS", "NAMESPACES", "STATE")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_output(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    users = sorted(people_of(context).read().users.values(), key=lambda each: each.name)
    rows = [
        (
            user.name,
            user.user_name,
            ",".join(user.roles),
            ",".join(user.groups),
            ",".join(user.status.namespaces),
            state_of(user),
        )
        for user in users
    ]
    print_rows(args, context, _HEADS, rows, [user_document(user) for user in users])
    return 0
