"""`fairlead user delete ID…` (docs/spec/people.md#commands)."""

from __future__ import annotations

import argparse

from fairlead.cli.frame.context import Context
from fairlead.cli.frame.flags import BooleanFlag
from fairlead.cli.people.asked import find_user, people_of, refuse
from fairlead.errors import FairleadError

NAME = "user delete"
HELP = """Delete users, with their ServiceAccounts, bindings and credentials. It is refused for a
user with unfinished pods or jobs, for the last administrator, and for a user that is not
deletable."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("users", nargs="+", metavar="ID", help="the ids of the users")
    parser.add_argument(
        "--force", action=BooleanFlag, help="although pods or jobs of the user are unfinished"
    )


def run(args: argparse.Namespace, context: Context) -> int:
    from fairlead.rules.people.refusals import user_deletion_refusal

    people, status = people_of(context), 0
    for name in dict.fromkeys(args.users):
        try:
            record = people.read()
            user = find_user(record, name)
            refusal = user_deletion_refusal(user, record, is_forced=args.force)
            refuse(f"user {name} is not deleted", refusal)
            people.delete_user(user, is_forced=args.force)
            context.stdout.write(f"user {name} deleted\n")
        except FairleadError as error:
            context.messages.error(error.what, error.hint)
            status = 1
    return status
