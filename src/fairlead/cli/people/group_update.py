"""`fairlead group update NAME` (docs/spec/people.md#commands)."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from fairlead.cli.frame.context import Context
from fairlead.cli.people.asked import (
    add_output,
    find_group,
    find_user,
    group_document,
    is_document,
    people_of,
    print_written,
    refuse,
)
from fairlead.errors import FairleadError, UserError

if TYPE_CHECKING:
    from fairlead.model.people.record import PeopleRecord
    from fairlead.model.people.rows import User, UserGroup

NAME = "group update"
HELP = """Change a group, or which users are in it. Nothing is written if a part is refused. The
leaf of a group does not change: rename the leaf, or make another group."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("group", metavar="NAME", help="the name of the group")
    add("--name", metavar="NAME", default="", help="the new name; the object keeps its own")
    _add_repeatable(parser, "--add-user", "ID", "put a user into the group")
    _add_repeatable(parser, "--remove-user", "ID", "take a user out of the group")
    _add_repeatable(parser, "--add-role", "ROLE", "one more ClusterRole in the leaf's namespaces")
    _add_repeatable(parser, "--remove-role", "ROLE", "")
    _add_repeatable(parser, "--add-cluster-role", "ROLE", "one more ClusterRole cluster-wide")
    _add_repeatable(parser, "--remove-cluster-role", "ROLE", "")
    _add_repeatable(
        parser,
        "--cap",
        "ID:RESOURCE=AMOUNT,…",
        "the most that a user may have admitted in the leaf, e.g. bob:nvidia.com/gpu=4",
    )
    _add_repeatable(parser, "--remove-cap", "ID", "the user has the cap of the leaf again")
    add_output(parser)


def _add_repeatable(parser: argparse.ArgumentParser, flag: str, metavar: str, text: str) -> None:
    parser.add_argument(
        flag,
        action="append",
        metavar=metavar,
        default=[],
        help=f"{text}; repeatable" if text else "repeatable",
    )


def run(args: argparse.Namespace, context: Context) -> int:
    from msgspec.structs import replace

    from fairlead.rules.people.refusals import group_change_refusal

    is_document(args)
    people = people_of(context)
    record = people.read()
    before = find_group(record, args.group)
    after = replace(
        before,
        group_name=args.name or before.group_name,
        default_roles=_changed(before.default_roles, args.add_role, args.remove_role),
        default_cluster_roles=_changed(
            before.default_cluster_roles, args.add_cluster_role, args.remove_cluster_role
        ),
        user_caps=_caps(args, before, record),
    )
    what = f"group {before.name} is not changed"
    refuse(what, group_change_refusal(after, record))
    users = _users(args, before, record)
    written = list[str]()
    try:
        if after != before:
            people.change_group(before, after)
            written.append("the group")
        for user, changed in users:
            people.change_user(user, changed)
            written.append(f"user {user.name}")
    except FairleadError as error:
        if written:
            context.messages.warn(f"{', '.join(written)} changed before the error")
        raise error
    sentence = f"group {before.name} {'changed' if written else 'is unchanged'}"
    print_written(args, context, sentence, group_document(after))
    return 0


def _users(
    args: argparse.Namespace, group: UserGroup, record: PeopleRecord
) -> list[tuple[User, User]]:
    """Each user that changes, before and after. Raises UserError if one may not."""
    from msgspec.structs import replace

    from fairlead.rules.people.refusals import user_refusal

    both = sorted({*args.add_user} & {*args.remove_user})
    if both:
        raise UserError(
            f"{', '.join(both)} is in both --add-user and --remove-user", "name a user once"
        )
    found: list[tuple[User, User]] = []
    for name in dict.fromkeys((*args.add_user, *args.remove_user)):
        user = find_user(record, name)
        groups = (
            dict.fromkeys((*user.groups, group.name))
            if name in args.add_user
            else [each for each in user.groups if each != group.name]
        )
        changed = replace(user, groups=tuple(groups))
        if changed != user:
            refuse(f"group {group.name} is not changed", user_refusal(changed, record))
            found.append((user, changed))
    return found


def _changed(
    present: Iterable[str], added: Iterable[str], removed: Collection[str]
) -> tuple[str, ...]:
    """Roles, each once."""
    unknown = [each for each in removed if each not in present]
    if unknown:
        raise UserError(
            f"the group does not have the role `{unknown[0]}`", "`fairlead group show` prints them"
        )
    return tuple(dict.fromkeys(each for each in (*present, *added) if each not in removed))


def _caps(
    args: argparse.Namespace, group: UserGroup, record: PeopleRecord
) -> dict[str, Mapping[str, str]]:
    from fairlead.wire.kube.quantity import parse_quantity

    found = {user: caps for user, caps in group.user_caps.items() if user not in args.remove_cap}
    for text in args.cap:
        user, _, parts = text.partition(":")
        pairs = [each.partition("=") for each in parts.split(",")]
        if not user or not all(name and amount for name, _, amount in pairs):
            raise UserError(
                f"--cap `{text}` is not ID:RESOURCE=AMOUNT", "for example bob:nvidia.com/gpu=4"
            )
        for name, _, amount in pairs:
            try:
                if parse_quantity(amount, scale=3) < 0:
                    raise ValueError("it is negative")
            except ValueError as error:
                raise UserError(
                    f"--cap `{text}`: `{amount}` is not an amount of {name}: {error}",
                    "write it as Kubernetes does, for example 4 or 16Gi",
                ) from error
        find_user(record, user)
        found[user] = {name: amount for name, _, amount in pairs}
    return found
