"""`fairlead store check` (docs/how-to/store.md)."""

from __future__ import annotations

import argparse

from fairlead.cli.frame.context import Context
from fairlead.cli.frame.documents import check_output, printed_document
from fairlead.cli.store.named import add_store, named_store
from fairlead.errors import UserError

NAME = "store check"
HELP = """Check whether the store answers and has the schema of this Fairlead; print its engine,
schema and number of rows. Changes nothing."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_store(parser)
    parser.add_argument("--output", "-o", metavar="FORMAT", default="", help="json or yaml")


def run(args: argparse.Namespace, context: Context) -> int:
    check_output(args.output)
    if args.output == "wide":
        raise UserError("`store check` has no format `wide`", "give `-o json` or `-o yaml`")
    found = named_store(args, context).check()
    facts = found.facts
    document = {
        "engine": facts.engine,
        "version": facts.engine_version,
        "store": facts.place,
        "schema": facts.schema,
        "id": facts.id,
        "rows": dict(found.rows),
    }
    if args.output:
        context.stdout.write(printed_document(args.output, document))
        return 0
    lines = [(name, str(value)) for name, value in document.items() if name != "rows"]
    lines += [(f"rows of {name}", str(count)) for name, count in found.rows.items()]
    width = max(len(name) for name, _ in lines) + 2
    context.stdout.write("".join(f"{name + ':':{width}}{value}\n" for name, value in lines))
    return 0
