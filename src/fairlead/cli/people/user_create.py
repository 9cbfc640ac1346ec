"""`fairlead user create NAME` (docs/spec/people.md#commands)."""

from __future__ import annotations

import argparse

from fairlead.cli.frame.context import Context
from fairlead.cli.people.asked import (
    add_output,
    group_names,
    is_document,
    people_of,
    print_written,
    refuse,
    user_document,
)
from fairlead.errors import UserError

NAME = "user create"
HELP = """Create a user. The id, which is also the name of the user's ServiceAccount, is NAME in
lower case, with a hyphen for each character that is neither a letter a-z nor a digit."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="the user's name, any text")
    add_role(parser, "researcher")
    parser.add_argument(
        "--group",
        action="append",
        metavar="GROUP",
        default=[],
        help="a group of the user; repeatable",
    )
    parser.add_argument(
        "--external",
        metavar="TYPE:UID",
        default="",
        help="the user in another system, e.g. oidc:4711",
    )
    add_output(parser)


def add_role(parser: argparse.ArgumentParser, default: str) -> None:
    parser.add_argument(
        "--role",
        choices=("admin", "researcher"),
        default=default,
        help=f"what the user is{f' (default {default})' if default else ''}",
    )


def run(args: argparse.Namespace, context: Context) -> int:
    from fairlead.model.people.rows import ExternalUser, User, UserRole
    from fairlead.model.refusal import Refusal
    from fairlead.rules.people.ids import user_id
    from fairlead.rules.people.refusals import user_refusal
    from fairlead.settings import USERS_NAMESPACE

    is_document(args)
    people = people_of(context)
    record = people.read()
    name = user_id(args.name, record.users)
    if isinstance(name, Refusal):
        raise UserError(f"the user is not created: {name.reason}", "choose another name")
    auth_type, _, uid = args.external.partition(":")
    if args.external and not (auth_type and uid):
        raise UserError(f"--external `{args.external}` is not TYPE:UID", "for example oidc:4711")
    user = User(
        name,
        USERS_NAMESPACE,
        user_name=args.name,
        roles=(UserRole(args.role),),
        groups=group_names(record, args.group),
        external=ExternalUser(auth_type, uid),
    )
    refuse("the user is not created", user_refusal(user, record))
    people.create_user(user)
    print_written(args, context, f"user {name} created", user_document(user))
    return 0
