"""`fairlead store import FILE` (docs/how-to/store.md#change-the-engine)."""

from __future__ import annotations

import argparse

from fairlead.cli.frame.context import Context
from fairlead.cli.frame.input_files import read_input
from fairlead.cli.store.named import add_store, named_store

NAME = "store import"
HELP = """Store the rows that `fairlead store export` printed in an empty store: all of them, or
none. Stop the consoles that use either store first."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="the lines; `-` for stdin")
    add_store(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    data = read_input(context.machine, args.file, "export")
    count = named_store(args, context).import_lines(data)
    context.stdout.write(f"imported {count} rows\n")
    return 0
