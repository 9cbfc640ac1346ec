"""`fairlead uninstall`: removes an installation from a cluster."""

from __future__ import annotations

import argparse

from fairlead.cli.frame.context import Context
from fairlead.cli.frame.flags import BooleanFlag
from fairlead.cli.installation.chosen import WAIT_SECONDS, target

NAME = "uninstall"
HELP = """Remove an installation of `fairlead install`: admission first, all other objects after it,
the namespaces last. Pods that wait for quota would wait forever, so it is refused while there are
any; --release-waiting lets them start. The definition of the quota tree and the trees stay, unless
--delete-data is given."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--release-waiting",
        action=BooleanFlag,
        help="let pods that wait for quota start, without quota",
    )
    parser.add_argument(
        "--delete-data",
        action=BooleanFlag,
        help="also remove the definition of the quota tree, and with it all trees",
    )
    parser.add_argument(
        "--dry-run", action=BooleanFlag, help="print what would be removed, and remove nothing"
    )
    parser.add_argument(
        "--helm-hook",
        action=BooleanFlag,
        help="end admission and let waiting pods go, and leave all other objects of a release to "
        "Helm; the chart's hook runs this",
    )
    parser.add_argument(
        "--wait",
        metavar="SECONDS",
        type=float,
        default=WAIT_SECONDS,
        help="how long to wait until all is gone (default 300)",
    )


def run(args: argparse.Namespace, context: Context) -> int:
    from fairlead.apps.installation.removal import Removal

    removal = Removal(
        target(context),
        lambda line: context.stdout.write(line + "\n"),
        context.now,
        context.sleep,
    )
    is_helms = args.helm_hook
    planned = (
        removal.planned_for_helm() if is_helms else removal.planned(with_data=args.delete_data)
    )
    if args.dry_run:
        for each in planned:
            context.stdout.write(f"remove {each.title}\n")
        return 0
    if is_helms:
        removal.let_go(planned, is_releasing=args.release_waiting, seconds=args.wait)
        return 0
    removal.carry_out(planned, is_releasing=args.release_waiting, seconds=args.wait)
    context.stdout.write("fairlead is removed\n")
    return 0
