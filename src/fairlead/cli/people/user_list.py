"""`fairlead user list` (docs/spec/people.md#commands)."""

from __future__ import annotations

import argparse

from fairlead.cli.frame.context import Context
from fairlead.cli.people.asked import add_output, people_of, print_rows, state_of, user_document

NAME = "user list"
HELP = "List the users of the cluster, by id."
_WIDE = ("EXTERNAL", "DELETABLE", "MESSAGE")
_HEADS = ("ID", "NAME", "ROLES", "GROUPS", "NAMESPACES", "STATE", *_WIDE)


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
            f"{user.external.auth_type}:{user.external.uid}" if user.external.uid else "",
            "yes" if user.is_deletable else "no",
            user.status.ready.message,
        )
        for user in users
    ]
    print_rows(
        args, context, _HEADS, rows, [user_document(user) for user in users], wide=len(_WIDE)
    )
    return 0
