"""`fairlead at MOMENT COMMAND` prints what a command would have printed then
(docs/spec/usage.md#past).

The parser takes the moment out before it looks for the command (`cli/frame/parser.split_moment`),
so this verb itself only explains.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from fairlead.cli.frame.context import Context
from fairlead.cli.frame.verbs import PAST_VERBS
from fairlead.cli.usage.sources import add_source, usage_source
from fairlead.errors import UserError

if TYPE_CHECKING:
    from fairlead.model.snapshot import ClusterSnapshot

NAME = "at"
HELP = """Print what a command would have printed at a moment of the last 90 days: `top node`,
`list` or `why`, with their flags. The cluster is read from the usage ledger, through the console or
with --store. MOMENT is a time such as 2026-11-20T02:00Z, a time without a zone in the time zone of
billing days, `-2h` (s, m, h, d), or `yesterday 02:00`. Utilization, used memory and power of GPUs,
topologies and Events are not kept."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("moment", metavar="MOMENT", help="the moment")
    parser.add_argument(
        "command",
        metavar="COMMAND",
        nargs="+",
        help=f"one of: {', '.join(PAST_VERBS)}; then its arguments and flags",
    )
    add_source(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    raise UserError(
        f"`{' '.join(args.command)[:60]}` cannot be shown of the past",
        f"`fairlead at MOMENT` takes {', '.join(PAST_VERBS)}",
    )


def read_moment(args: argparse.Namespace, context: Context, moment: str) -> ClusterSnapshot:
    """The cluster at the moment; a gap is a warning. `args`: of the command, with `add_source`.

    Raises UserError with the bounds for a moment that the ledger does not have.
    """
    if getattr(args, "refresh", False) or getattr(args, "watch", False):
        raise UserError("the past does not change", "leave out --refresh or --watch")
    snapshot, gap = usage_source(args, context).past(moment)
    if gap:
        context.messages.warn(gap)
    return snapshot
