"""`fairlead kubeconfig show CREDENTIAL` (docs/spec/people.md#commands)."""

from __future__ import annotations

import argparse

from fairlead.cli.frame.context import Context
from fairlead.cli.people.asked import (
    add_output,
    credential_document,
    credential_state,
    expiry,
    find_credential,
    is_document,
    people_of,
    print_document,
    print_rows,
)

NAME = "kubeconfig show"
HELP = "Show what is known of a credential. Its token and its kubeconfig are not kept."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="CREDENTIAL", help="as `kubeconfig list` prints it")
    add_output(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    from fairlead.wire.kube.time import render_time

    is_doc = is_document(args)
    found = find_credential(people_of(context), args.name)
    if is_doc:
        print_document(args, context, credential_document(found))
        return 0
    rows = [
        ("User:", found.user),
        ("Issued:", render_time(found.issued_at)),
        ("Issued by:", found.issued_by or "unknown"),
        ("Expires:", expiry(found)),
        ("State:", credential_state(found, context.now())),
        ("Note:", found.note or "none"),
    ]
    print_rows(args, context, ("Credential:", found.name), rows, [])
    return 0
