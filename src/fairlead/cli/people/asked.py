"""What the verbs about users and groups share: finding them, refusing, tables and documents."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from fairlead.cli.frame.context import ClusterPeople, Context
from fairlead.cli.frame.documents import check_output, printed_document
from fairlead.cli.frame.object_names import NO_API_SERVER_HINT
from fairlead.errors import UserError

if TYPE_CHECKING:
    from fairlead.model.people.record import Credential, PeopleRecord
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
        raise UserError(f"there is no user `{name}`", _user_hint(record, name))
    return record.users[name]


def _user_hint(record: PeopleRecord, name: str) -> str:
    ident = next((each.name for each in record.users.values() if each.user_name == name), None)
    if ident is not None:
        return f"the id of the user named {name} is `{ident}`"
    return "`fairlead user list` shows the ids"


def find_group(record: PeopleRecord, name: str) -> UserGroup:
    """By its object name or its group name. Raises UserError when there is none."""
    found = record.groups.get(name) or next(
        (each for each in record.groups.values() if each.group_name == name), None
    )
    if found is None:
        raise UserError(f"there is no group `{name}`", "`fairlead group list` shows the names")
    return found


def members_of(group: UserGroup, record: PeopleRecord) -> list[str]:
    """Ids of the users that list the group."""
    return sorted(user.name for user in record.users.values() if group.name in user.groups)


def group_names(
    record: PeopleRecord, asked: Iterable[str], listed: Collection[str] = ()
) -> tuple[str, ...]:
    """Object names of groups, each once. `listed`: names that need not be of groups, because a
    user lists them.
    """
    names = (name if name in listed else find_group(record, name).name for name in asked)
    return tuple(dict.fromkeys(names))


def find_credential(people: ClusterPeople, name: str) -> Credential:
    """Raises UserError when there is none."""
    found = next((each for each in people.credentials() if each.name == name), None)
    if found is None:
        raise UserError(
            f"there is no credential `{name}`", "`fairlead kubeconfig list` shows the names"
        )
    return found


def refuse(what: str, refusal: Refusal | None) -> None:
    """Raises UserError if there is a refusal."""
    if refusal is not None:
        raise UserError(f"{what}: {refusal.reason}", refusal.hint)


def add_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--output", "-o", metavar="FORMAT", default="", help="json, yaml or wide")


def is_document(args: argparse.Namespace) -> bool:
    """Whether `-o` asks for JSON or YAML. Raises UserError for another format than those."""
    check_output(args.output)
    return args.output in ("json", "yaml")


def print_rows(
    args: argparse.Namespace,
    context: Context,
    heads: Sequence[str],
    rows: Iterable[Sequence[str]],
    documents: list[dict[str, Any]],
    wide: int = 0,
) -> None:
    """A table, or with `-o` the documents. `wide`: how many of the last columns only `-o wide`
    has.
    """
    if is_document(args):
        print_document(args, context, documents)
        return
    from fairlead.wire.text.tabwriter import render_rows
    from fairlead.wire.text.terminal_text import first_line

    width = len(heads) if args.output == "wide" else len(heads) - wide
    cells = [[first_line(cell) for cell in row[:width]] for row in rows]
    context.stdout.write(render_rows([heads[:width], *cells]))


def print_written(
    args: argparse.Namespace, context: Context, sentence: str, document: dict[str, Any]
) -> None:
    """What a command has written: a sentence, or with `-o` the object."""
    if is_document(args):
        print_document(args, context, document)
    else:
        context.stdout.write(f"{sentence}\n")


def print_document(args: argparse.Namespace, context: Context, document: object) -> None:
    context.stdout.write(printed_document(args.output, document))


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


def expiry(credential: Credential) -> str:
    """When its token ends. One that is renewed ends when it is not used for its lifetime."""
    from fairlead.wire.kube.time import render_time

    if credential.is_renewed:
        hours = (credential.expires_at - credential.issued_at) / 3600
        return f"unused for {hours:.3g} h"
    return render_time(credential.expires_at)


def credential_state(credential: Credential, now: float) -> str:
    """Whether a renewed one is used, only its user's file shows."""
    if credential.is_renewed:
        return "renewed"
    return "valid" if credential.expires_at > now else "expired"


def credential_document(credential: Credential) -> dict[str, Any]:
    """What is known of a credential. `expiresAt`: of its first token."""
    from fairlead.wire.kube.time import render_time

    return {
        "name": credential.name,
        "user": credential.user,
        "issuedAt": render_time(credential.issued_at),
        "expiresAt": render_time(credential.expires_at),
        "renewed": credential.is_renewed,
        "issuedBy": credential.issued_by,
        "note": credential.note,
    }
