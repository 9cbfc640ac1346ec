"""`arena whoami`: as whom does the cluster see us? (arena contract §1)"""

from __future__ import annotations

import argparse
import hashlib
import json

from fairlead.cli.context import Context

NAME = "whoami"
HELP = "Print who the cluster takes you for: name, the id that labels your jobs, and whether you administrate arena."

CONFIG_MAP = "arena-config"
ADMINS = "adminUsers"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """It has no flag of its own."""


def run(args: argparse.Namespace, context: Context) -> int:
    jobs = context.world.jobs()
    name = jobs.user()
    admins = jobs.config(context.options.arena_namespace, CONFIG_MAP).get(ADMINS, "").split(",")
    told = {"Name": name, "Id": user_id(name), "IsAdminUser": name in {admin.strip() for admin in admins}}
    context.stdout.write(json.dumps(told, separators=(",", ":"), ensure_ascii=False) + "\n")
    return 0


def user_id(name: str) -> str:
    """What stands in the label `arena.kubeflow.org/uid` of a person's jobs: a name for a label, no secret.

    >>> user_id("alice")
    '6384e2b2184bcbf58eccf10ca7a6563c'
    """
    return hashlib.md5(name.encode(), usedforsecurity=False).hexdigest()
