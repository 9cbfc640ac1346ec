"""`fairlead group show NAME` (docs/spec/people.md#commands)."""

from __future__ import annotations

import argparse

from fairlead.cli.frame.context import Context
from fairlead.cli.people.asked import (
    add_output,
    find_group,
    group_document,
    is_document,
    members_of,
    people_of,
    print_document,
    print_rows,
)

NAME = "group show"
HELP = "Show a group: its leaf, namespaces, users, roles and caps, and why it is not ready."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("group", metavar="NAME", help="the name of the group")
    add_output(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    is_doc = is_document(args)
    record = people_of(context).read()
    group = find_group(record, args.group)
    if is_doc:
        print_document(args, context, group_document(group))
        return 0
    status = group.status
    caps = [
        ("Cap:", f"{user}: {', '.join(f'{name} {amount}' for name, amount in amounts.items())}")
        for user, amounts in group.user_caps.items()
    ]
    rows = [
        ("Name:", group.group_name),
        ("Leaf:", group.leaf),
        ("Namespaces:", ", ".join(status.namespaces) or "none"),
        ("Users:", ", ".join(members_of(group, record)) or "none"),
        ("Roles:", ", ".join(group.default_roles) or "none"),
        ("Cluster roles:", ", ".join(group.default_cluster_roles) or "none"),
        *caps,
        ("State:", status.ready.reason or "Pending"),
        *((("Message:", status.ready.message),) if status.ready.message else ()),
    ]
    print_rows(args, context, ("Group:", group.name), rows, [])
    return 0
