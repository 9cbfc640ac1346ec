"""What verbs about data share: the cluster, and waiting for a change of it."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Final

from fairlead.cli.frame.context import ClusterData, Context
from fairlead.cli.frame.flags import wait_seconds
from fairlead.cli.frame.object_names import NO_API_SERVER_HINT
from fairlead.errors import UserError

WAIT_SECONDS: Final = 300.0
_LOOK_SECONDS: Final = 1.0


def add_wait(parser: argparse.ArgumentParser, until: str) -> None:
    parser.add_argument(
        "--wait",
        metavar="SECONDS",
        type=wait_seconds,
        default=WAIT_SECONDS,
        help=f"how long to wait {until}; 0: do not wait (default 300)",
    )


def data_of(context: Context) -> ClusterData:
    """Raises UserError without an API server."""
    found = context.world.data()
    if found is None:
        raise UserError("there is no API server to ask for data", NO_API_SERVER_HINT)
    return found


def wait_for(what: str, missing: Callable[[], str], seconds: float, context: Context) -> None:
    """Waits until `missing` is "", and prints each other text once. Raises UserError with the last
    one after `seconds`.
    """
    end = context.now() + seconds
    printed = ""
    while lacking := missing():
        if lacking != printed:
            context.stdout.write(f"waiting: {lacking}\n")
            context.stdout.flush()
            printed = lacking
        if context.now() >= end:
            hint = "`fairlead dataset list -o wide` shows its state; Fluid goes on"
            raise UserError(f"{what}: {lacking} after {seconds:.0f} s", hint)
        context.sleep(_LOOK_SECONDS)
    context.stdout.write(f"{what}: done\n")
