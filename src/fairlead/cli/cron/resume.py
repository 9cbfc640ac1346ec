"""`arena cron resume CRON`: make jobs again (docs/spec/arena-cli.md#messages-of-the-commands)."""

from __future__ import annotations

import argparse

from fairlead.cli.cron.search import add_cron, switch
from fairlead.cli.frame.context import Context

NAME = "cron resume"
HELP = "Resume a suspended cron: it creates jobs again."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_cron(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    return switch(args, context, is_suspended=False)
