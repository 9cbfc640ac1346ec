"""`arena whoami` prints the user's name in the cluster (docs/spec/arena-cli.md#whoami)."""

from __future__ import annotations

import argparse
import json

from fairlead.cli.frame.context import Context
from fairlead.wire.people.arena_people import CONFIG_MAP, parse_admins, person_id

NAME = "whoami"
HELP = (
    "Print your name in the cluster, the id that labels your jobs, and whether you are an "
    "administrator of arena."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """It has no flag of its own."""


def run(args: argparse.Namespace, context: Context) -> int:
    jobs = context.world.jobs()
    name = jobs.user()
    admins = parse_admins(jobs.config(context.options.arena_namespace, CONFIG_MAP))
    document = {"Name": name, "Id": person_id(name), "IsAdminUser": name in admins}
    context.stdout.write(json.dumps(document, separators=(",", ":"), ensure_ascii=False) + "\n")
    return 0
