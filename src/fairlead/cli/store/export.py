"""`fairlead store export` (docs/how-to/store.md#change-the-engine)."""

from __future__ import annotations

import argparse

from fairlead.cli.frame.context import Context
from fairlead.cli.store.named import add_store, named_store

NAME = "store export"
HELP = """Print all rows of the store as JSON lines, of one moment: the console may go on. `fairlead
store import` reads them into another store, also of another engine. The lines contain the audit and
the users who are signed in: keep them as the store itself."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_store(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    for line in named_store(args, context).export():
        context.stdout.write_bytes(line)
    return 0
