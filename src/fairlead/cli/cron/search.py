"""Finds the cron that a command means; what the verbs about crons share."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

from fairlead.cli.frame.context import ClusterCrons, Context
from fairlead.cli.frame.object_names import NO_API_SERVER_HINT, check_name
from fairlead.errors import UserError

if TYPE_CHECKING:
    from fairlead.model.jobs.cron import Cron


def crons_of(context: Context) -> ClusterCrons:
    crons = context.world.crons()
    if crons is None:
        raise UserError(
            "there is no API server to ask for crons",
            NO_API_SERVER_HINT,
        )
    return crons


def find_cron(context: Context, name: str) -> Cron:
    """Raises UserError when there is none of that name."""
    check_name(name)
    found = crons_of(context).get(context.world.namespace(), name)
    if found is None:
        raise absent(context, name)
    return found


def absent(context: Context, name: str) -> UserError:
    return UserError(
        f"cron {name} is not in namespace {context.world.namespace()}",
        "`arena cron list -A` shows every namespace",
    )


def switch(args: argparse.Namespace, context: Context, *, is_suspended: bool) -> int:
    """`cron suspend` and `cron resume`."""
    check_name(args.cron)
    if not crons_of(context).suspend(
        context.world.namespace(), args.cron, is_suspended=is_suspended
    ):
        raise absent(context, args.cron)
    context.stdout.write(f"cron {args.cron} {'suspend' if is_suspended else 'resume'} success\n")
    return 0


def add_cron(parser: argparse.ArgumentParser) -> Callable[..., object]:
    return parser.add_argument("cron", metavar="CRON", help="the cron's name")
