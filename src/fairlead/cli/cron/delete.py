"""`arena cron delete CRON…` ends schedules and removes the jobs that they made.

See docs/spec/arena-cli.md#crons, docs/spec/arena-cli.md#messages-of-the-commands.

As with jobs, a name that does not exist is no failure, and never stops the names after it.
"""

from __future__ import annotations

import argparse

from fairlead.cli.cron.search import crons_of
from fairlead.cli.frame.context import Context
from fairlead.cli.frame.object_names import check_name
from fairlead.errors import FairleadError, UserError

NAME = "cron delete"
HELP = (
    "Delete crons and the jobs that they created. "
    "A name that does not exist is reported and skipped."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("crons", nargs="*", metavar="CRON", help="names of the crons")


def run(args: argparse.Namespace, context: Context) -> int:
    if not args.crons:
        raise UserError("not set cron name,please set it", "`arena cron list` lists the names")
    crons, namespace, status = crons_of(context), context.world.namespace(), 0
    for name in dict.fromkeys(args.crons):
        try:
            check_name(name)
            if crons.delete(namespace, name):
                context.stdout.write(f"cron {name} has deleted\n")
            else:
                context.messages.warn(f"The cron '{name}' does not exist,skip to delete it")
        except FairleadError as error:
            context.messages.error(error.what, error.hint)
            status = 1
    return status
