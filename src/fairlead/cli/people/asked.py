"""What the verbs about users and groups share: finding them, refusing, tables and documents."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from fairlead.cli.frame.context import ClusterPeople, Context
from fairlead.cli.frame.documents import check_output, render_document
from fairlead.cli.frame.object_names import NO_API_SERVER_HINT
from fairlead.errors import UserError

if TYPE_CHECKING:
    from fairlead.model.people.record import PeopleRecord
    from fairlead.model.people.rows import User, UserGroup
    from fairlead.model.refusal import Refusal


def people_of(context: Context) -> ClusterPeople:
    people = context.world.people()
    if people is None:
        raise UserError("there is no API server to ask for users", NO_API_SERVER_HINT)
    return people


def find_user(record: PeopleRecord, name: str) -> User:
    """By id. Raises UserError when there is none."""
    if name not in record.users:
        raise UserError(f"there is no user `{name}`", "`fairlead user list` shows the ids")
    return record.users[name]


def find_group(record: PeopleRecord, name: str) -> UserGroup:
    """By its object name or its group name. Raises UserError when there is none."""
    found = record.groups.get(name) or next(
        (each for each in record.groups.values() if each.group_name == name), None
    )
    if found is None:
        raise UserError(f"there is no group `{name}`", "`fairlead group list` shows the names")
    return found


def group_names(record: PeopleRecord, asked: Iterable[str]) -> tuple[str, ...]:
    """Object names of groups, each once."""
    return tuple(dict.fromkeys(find_group(record, name).name for name in asked))


def refuse(what: str, refusal: Refusal | None, hint: str = "") -> None:
    """Raises UserError if there is a refusal."""
    if refusal is not None:
        raise UserError(f"{what}: {refusal.reason}", hint)


def add_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--output", "-o", metavar="FORMAT", default="", help="json or yaml")


def print_rows(
    args: argparse.Namespace,
    context: Context,
    heads: Sequence[str],
    rows: Iterable[Sequence[str]],
    documents: list[dict[str, Any]],
) -> None:
    """A table, or with `-o` the documents."""
    check_output(args.output)
    if args.output in ("json", "yaml"):
        print_document(args, context, documents)
        return
    from fairlead.wire.text.tabwriter import render_rows
    from fairlead.wire.text.terminal_text import first_line

    cells = [[first_line(cell) for cell in row] for row in rows]
    context.stdout.write(render_rows([heads, *cells]))


def print_document(args: argparse.Namespace, context: Context, document: object) -> None:
    text = render_document(args.output, document)
    context.stdout.write(text if text.endswith("\n") else f"{text}\n")


def user_document(user: User) -> dict[str, Any]:
    """The object as it is in the cluster, without what only the API server needs."""
    from fairlead.wire.people.people_objects import render_user, render_user_status

    return {**render_user(user), "status": render_user_status(user.status, user.namespace)}


def group_document(group: UserGroup) -> dict[str, Any]:
    from fairlead.wire.people.people_objects import render_group, render_group_status

    return {**render_group(group), "status": render_group_status(group.status)}


def state_of(user: User) -> str:
    """
    >>> from fairlead.model.people.rows import User
    >>> state_of(User("bob")), state_of(User("bob", is_disabled=True))
    ('Pending', 'Disabled')
    """
    if user.is_ending:
        return user.status.ready.reason or "Ending"
    if user.is_disabled:
        return "Disabled"
    return user.status.ready.reason or "Pending"
