"""`fairlead user import FILE…` (docs/spec/people.md#import)."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from fairlead.cli.frame.context import ClusterPeople, Context
from fairlead.cli.frame.flags import BooleanFlag
from fairlead.cli.people.asked import people_of
from fairlead.errors import UserError

if TYPE_CHECKING:
    from fairlead.model.people.record import PeopleRecord
    from fairlead.model.people.rows import User, UserGroup
    from fairlead.wire.people.imports import Imported

NAME = "user import"
HELP = """Create the users and groups of YAML files, or those that ACK's console keeps in the
cluster. What exists is not changed; differences are printed, so that a second import changes
nothing. Passwords and stored bindings are left out."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "files",
        nargs="*",
        metavar="FILE",
        help="YAML with User and UserGroup objects; `-` for stdin",
    )
    add(
        "--from-cluster",
        action=BooleanFlag,
        help="those of data.kubeai.alibabacloud.com in the cluster",
    )
    add(
        "--adopt",
        action=BooleanFlag,
        help="let the users have the ServiceAccounts of their names that exist already",
    )
    add("--dry-run", action=BooleanFlag, help="print what would be done")


def run(args: argparse.Namespace, context: Context) -> int:
    from fairlead.model.people.rows import User, UserGroup
    from fairlead.wire.people.imports import parse_imported

    if not args.files and not args.from_cluster:
        raise UserError("there is nothing to import", "name a FILE, or give --from-cluster")
    people = people_of(context)
    objects = [each for name in args.files for each in _objects(context, name)]
    if args.from_cluster:
        objects += people.vendor_objects()
    found = [each for obj in objects if (each := parse_imported(obj)) is not None]
    if not found:
        raise UserError("there is no User and no UserGroup to import", "look into the files")
    record, status = people.read(), 0
    for kind in (UserGroup, User):  # a user names groups
        for each in found:
            is_bad = each.row is None
            if isinstance(each.row, kind) or (is_bad and kind is UserGroup):
                _warn(context, each)
                status |= is_bad
            if isinstance(each.row, kind):
                line = _import(people, record, each.row, is_trial=args.dry_run)
                context.stdout.write(f"{each.title} {line}\n")
                if args.adopt and isinstance(each.row, User) and not args.dry_run:
                    people.adopt_service_account(each.row.name)
    return status


def _import(
    people: ClusterPeople, record: PeopleRecord, row: User | UserGroup, *, is_trial: bool
) -> str:
    """What was done, in a word or two."""
    from fairlead.model.people.rows import User
    from fairlead.wire.people.imports import differences

    is_user = isinstance(row, User)
    before = (record.users if is_user else record.groups).get(row.name)
    if before is not None:
        fields = differences(before, row)
        return f"differs and is kept as it is: {', '.join(fields)}" if fields else "unchanged"
    if not is_trial:
        if isinstance(row, User):
            people.create_user(row)
        else:
            people.create_group(row)
    return "created (dry run)" if is_trial else "created"


def _warn(context: Context, imported: Imported) -> None:
    for each in imported.warnings:
        if imported.row is None:
            context.messages.error(f"{imported.title} is not imported: {each}", "")
        else:
            context.messages.warn(f"{imported.title}: {each}")


def _objects(context: Context, name: str) -> Iterator[Any]:
    """The objects of a YAML file; those of a List one by one."""
    import yaml

    from fairlead.cli.frame.input_files import read_input
    from fairlead.wire.files.bounded import load_yaml_documents

    hint = "it needs objects of kind User or UserGroup"
    text = read_input(context.machine, name, "file", hint)
    try:
        documents = load_yaml_documents(text)
    except yaml.YAMLError as error:
        # the whole text of the error may quote a password
        what = getattr(error, "problem", None) or "it cannot be read"
        mark = getattr(error, "problem_mark", None)
        place = f", line {mark.line + 1}" if mark is not None else ""
        raise UserError(f"`{name}` is not YAML: {what}{place}", hint) from error
    for each in documents:
        items = each.get("items") if isinstance(each, dict) else None
        yield from items if isinstance(items, list) else [each]
