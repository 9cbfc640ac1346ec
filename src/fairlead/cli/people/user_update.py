"""`fairlead user update ID` (docs/spec/people.md#commands)."""

from __future__ import annotations

import argparse

from fairlead.cli.frame.context import Context
from fairlead.cli.frame.flags import BooleanFlag
from fairlead.cli.people.asked import (
    add_output,
    find_user,
    group_names,
    is_document,
    people_of,
    print_written,
    refuse,
    user_document,
)
from fairlead.cli.people.user_create import add_role
from fairlead.errors import UserError

NAME = "user update"
HELP = """Change a user. Leaving a group is refused while pods or jobs of the user in its namespaces
are unfinished. A disabled user has no rights and no working token."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("user", metavar="ID", help="the user's id")
    add("--add-group", action="append", metavar="GROUP", default=[], help="repeatable")
    add("--remove-group", action="append", metavar="GROUP", default=[], help="repeatable")
    add_role(parser, "")
    add("--disable", action=BooleanFlag, help="withdraw all rights and tokens, and keep the user")
    add("--enable", action=BooleanFlag, help="give a disabled user the rights back")
    add_output(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    from msgspec.structs import replace

    from fairlead.model.people.rows import UserRole
    from fairlead.rules.people.refusals import user_refusal

    if args.disable and args.enable:
        raise UserError("--disable and --enable exclude each other", "give one of them")
    is_document(args)
    people = people_of(context)
    record = people.read()
    before = find_user(record, args.user)
    gone = set(group_names(record, args.remove_group, listed=before.groups))
    kept = [each for each in before.groups if each not in gone]
    after = replace(
        before,
        groups=tuple(dict.fromkeys((*kept, *group_names(record, args.add_group)))),
        roles=(UserRole(args.role),) if args.role else before.roles,
        is_disabled=args.disable or (before.is_disabled and not args.enable),
    )
    if after == before:
        print_written(args, context, f"user {before.name} is unchanged", user_document(before))
        return 0
    refuse(f"user {before.name} is not changed", user_refusal(after, record))
    people.change_user(before, after)
    print_written(args, context, f"user {before.name} changed", user_document(after))
    return 0
