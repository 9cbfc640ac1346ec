"""`fairlead store migrate` (docs/how-to/store.md#upgrades)."""

from __future__ import annotations

import argparse

from fairlead.cli.frame.context import Context
from fairlead.cli.store.named import add_store, named_store

NAME = "store migrate"
HELP = """Bring the store to the schema of this Fairlead, as a console does at its start. An empty
database gets the tables. A SQLite file is copied first, to FILE.before-SCHEMA. A store that a newer
Fairlead has migrated is refused."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_store(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    schema = named_store(args, context).migrate(lambda line: _print(context, line))
    _print(context, f"the store has schema `{schema}`")
    return 0


def _print(context: Context, line: str) -> None:
    context.stdout.write(f"{line}\n")
