"""`fairlead component list` (docs/spec/components.md#states)."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from fairlead.cli.components.asked import facts_of
from fairlead.cli.frame.context import Context
from fairlead.cli.frame.findings import add_output, check_output

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairlead.model.operations.component import ComponentRow

NAME = "component list"
HELP = """List the components that Fairlead knows: its own parts and programs of others, how each
is, what manages it and which version is there. A component that another program deployed is
`Foreign`: Fairlead shows it and never changes it. `?`: it could not be read, with the reason below
the table."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_output(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    check_output(args)
    from fairlead.rules.components.catalogue import CATALOGUE
    from fairlead.rules.components.state import component_rows

    rows = component_rows(facts_of(context, CATALOGUE))
    if args.output == "json":
        from fairlead.cli.frame.documents import render_json

        document = {"items": [component_document(each) for each in rows]}
        context.stdout.write(render_json(document) + "\n")
        return 0
    context.stdout.write(_table(rows))
    return 0


def component_document(row: ComponentRow) -> dict[str, Any]:
    """A row as JSON."""
    return {
        "id": row.id,
        "group": row.group.value,
        "title": row.title,
        "state": row.state.value if row.state else None,
        "managedBy": row.managed_by,
        "version": row.version,
        "available": row.available,
        "canUpgrade": row.can_upgrade,
        "namespace": row.namespace,
        "release": row.release,
        "message": row.message,
        "operation": row.operation,
    }


def _table(rows: Sequence[ComponentRow]) -> str:
    from fairlead.wire.text.tabwriter import render_rows
    from fairlead.wire.text.terminal_text import first_line

    head = ("NAME", "GROUP", "STATE", "VERSION", "AVAILABLE", "MANAGED BY", "NAMESPACE")
    cells = [
        (
            each.id,
            each.group.value,
            each.state.value if each.state else "?",
            each.version or "-",
            each.available or "-",
            each.managed_by or "-",
            each.namespace or "-",
        )
        for each in rows
    ]
    text = render_rows([head, *(tuple(map(first_line, row)) for row in cells)])
    named: dict[str, list[str]] = {}
    for each in rows:
        if each.message:
            named.setdefault(each.message, []).append(each.id)
    notes = [first_line(f"{', '.join(ids)}: {message}") for message, ids in named.items()]
    return text + ("\n" + "".join(f"{note}\n" for note in notes) if notes else "")
