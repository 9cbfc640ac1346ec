"""`arena cron suspend CRON`: make no more jobs (arena contract §2.4)."""

from __future__ import annotations

import argparse

from fairlead.cli.context import Context
from fairlead.cli.cron_search import add_cron, switch

NAME = "cron suspend"
HELP = "Let a cron make no jobs until it is resumed; those that run go on."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_cron(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    return switch(args, context, is_suspended=True)
