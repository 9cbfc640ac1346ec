"""`fairlead kubeconfig list` (docs/spec/people.md#commands)."""

from __future__ import annotations

import argparse

from fairlead.cli.frame.context import Context
from fairlead.cli.people.asked import (
    add_output,
    credential_document,
    credential_state,
    expiry,
    find_user,
    people_of,
    print_rows,
)

NAME = "kubeconfig list"
HELP = "List the credentials that were issued and not revoked, the newest first. No token is kept."
_HEADS = ("CREDENTIAL", "USER", "ISSUED", "EXPIRES", "STATE", "ISSUED-BY", "NOTE")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("user", nargs="?", metavar="ID", default="", help="of this user only")
    add_output(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    from fairlead.wire.kube.time import render_time

    now = context.now()
    people = people_of(context)
    found = people.credentials(args.user)
    if args.user and not found:
        find_user(people.read(), args.user)
    rows = [
        (
            each.name,
            each.user,
            render_time(each.issued_at),
            expiry(each),
            credential_state(each, now),
            each.issued_by,
            each.note,
        )
        for each in found
    ]
    documents = [credential_document(each) for each in found]
    print_rows(args, context, _HEADS, rows, documents)
    return 0
