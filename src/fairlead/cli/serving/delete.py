"""`arena serve delete JOB…` ends serving jobs and removes all that belongs to them.

See docs/spec/arena-cli.md#serving-jobs, docs/spec/arena-cli.md#messages-of-the-commands.

A name that does not exist is no failure, and never stops the names after it.
"""

from __future__ import annotations

import argparse

from fairlead.cli.frame.context import Context
from fairlead.cli.frame.object_names import check_name
from fairlead.cli.serving.search import (
    add_type,
    add_version,
    one_serving,
    read_servings,
    servings_of_world,
)
from fairlead.errors import FairleadError

NAME = "serve delete"
HELP = (
    "Delete serving jobs with their Services and pods. "
    "A name that does not exist is reported and skipped."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("jobs", nargs="+", metavar="SERVING_JOB", help="names of the jobs")
    add_type(parser)
    add_version(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    status = 0
    for name in dict.fromkeys(args.jobs):
        try:
            _delete(args, context, name)
        except FairleadError as error:
            context.messages.error(error.what, error.hint)
            status = 1
    return status


def _delete(args: argparse.Namespace, context: Context, name: str) -> None:
    check_name(name)
    found = read_servings(args, context, context.world.namespace(), name)
    if not found.servings:
        context.messages.info(f"The serving job '{name}' does not exist,skip to delete it.")
        return
    serving = one_serving(found)
    servings_of_world(context).delete(serving)
    context.messages.info(
        f"The serving job {serving.name} with version {serving.version} has been deleted "
        "successfully"
    )
