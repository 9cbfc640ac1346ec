"""`fairlead user show ID` (docs/spec/people.md#commands)."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from fairlead.cli.frame.context import Context
from fairlead.cli.people.asked import (
    add_output,
    find_user,
    is_document,
    people_of,
    print_document,
    print_rows,
    state_of,
    user_document,
)

if TYPE_CHECKING:
    from fairlead.model.resources import Amounts

NAME = "user show"
HELP = "Show a user: groups, namespaces, each binding, and why the user is not ready."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("user", metavar="ID", help="the user's id")
    add_output(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    user = find_user(people_of(context).read(), args.user)
    if is_document(args):
        print_document(args, context, user_document(user))
        return 0
    status = user.status
    rows = [
        ("Name:", user.user_name),
        ("Roles:", ", ".join(user.roles)),
        ("Groups:", ", ".join(user.groups) or "none"),
        ("Namespaces:", ", ".join(status.namespaces) or "none"),
        ("ServiceAccount:", status.service_account or "none"),
        ("Deletable:", "yes" if user.is_deletable else "no"),
        ("State:", state_of(user)),
        *((("Message:", status.ready.message),) if status.ready.message else ()),
        *(("Used:", f"{each.leaf}: {_words(each.used)}") for each in status.used),
        *(("Binding:", each.name) for each in status.bindings),
    ]
    print_rows(args, context, ("ID:", user.name), rows, [])
    return 0


def _words(amounts: Amounts) -> str:
    from fairlead.wire.kube.quantity import render_amounts

    return ", ".join(f"{name} {amount}" for name, amount in render_amounts(amounts).items())
