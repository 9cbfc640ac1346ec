"""`fairlead kubeconfig delete CREDENTIAL` (docs/spec/people.md#commands)."""

from __future__ import annotations

import argparse

from fairlead.cli.frame.context import Context
from fairlead.cli.frame.flags import BooleanFlag
from fairlead.cli.people.asked import find_credential, find_user, people_of

NAME = "kubeconfig delete"
HELP = """Revoke a credential, or with --all every token of a user. kube-apiserver may accept a
revoked token for 10 seconds more."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="CREDENTIAL", help="the credential, with --all a user's id")
    parser.add_argument(
        "--all",
        action=BooleanFlag,
        help="every token of the user, also one that `kubectl create token` issued",
    )


def run(args: argparse.Namespace, context: Context) -> int:
    people = people_of(context)
    if args.all:
        user = find_user(people.read(), args.name)
        count = people.revoke_all(user.name)
        context.stdout.write(f"every token of {user.name} revoked, {count} recorded\n")
        return 0
    found = find_credential(people, args.name)
    people.revoke(found)
    context.stdout.write(f"credential {found.name} of {found.user} revoked\n")
    return 0
