"""`arena cron suspend CRON`: make no more jobs.

See docs/spec/arena-cli.md#messages-of-the-commands.
"""

from __future__ import annotations

import argparse

from fairlead.cli.cron.search import add_cron, switch
from fairlead.cli.frame.context import Context

NAME = "cron suspend"
HELP = "Suspend a cron: it creates no jobs until it is resumed; running jobs continue."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_cron(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    return switch(args, context, is_suspended=True)
