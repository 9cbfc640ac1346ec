"""`fairlead uninstall`: removes an installation from a cluster."""

from __future__ import annotations

import argparse

from fairlead.cli.frame.context import Context
from fairlead.cli.frame.flags import BooleanFlag, wait_seconds
from fairlead.cli.installation.chosen import WAIT_SECONDS, progress, resumable, target

NAME = "uninstall"
HELP = """Remove an installation of `fairlead install`: admission first, all other objects after it,
the namespaces last. Pods and jobs that wait for quota, and pods of Fairlead's scheduler, would wait
forever, so it is refused while there are any; --release-waiting lets those that wait for quota go
on, and names the others. The definition of the quota tree and the trees stay, unless --delete-data
is given. After an interruption run the same command again."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--release-waiting",
        action=BooleanFlag,
        help="let pods and jobs that wait for quota go on, without quota",
    )
    parser.add_argument(
        "--delete-data",
        action=BooleanFlag,
        help="also remove the definition of the quota tree with all trees, and what Fairlead wrote "
        "on nodes and namespaces",
    )
    parser.add_argument(
        "--dry-run", action=BooleanFlag, help="print what would be removed, and remove nothing"
    )
    parser.add_argument(
        "--helm-hook",
        action=BooleanFlag,
        help="end admission and workloads of a Helm release, let go what waits for them, and leave "
        "all other objects to Helm; the chart's hook runs this",
    )
    parser.add_argument(
        "--wait",
        metavar="SECONDS",
        type=wait_seconds,
        default=WAIT_SECONDS,
        help="how long to wait until all is gone (default 300)",
    )


def run(args: argparse.Namespace, context: Context) -> int:
    from fairlead.apps.installation.removal import Removal

    is_helms = args.helm_hook
    lease = None if is_helms else context.world.installation_lease("fairlead uninstall")
    removal = Removal(target(context), progress(context), context.now, context.sleep, lease)
    plan = removal.plan_for_helm() if is_helms else removal.plan(with_data=args.delete_data)
    if args.dry_run:
        for each in plan.targets:
            context.stdout.write(f"remove {each.title}\n")
        for patch in plan.traces:
            context.stdout.write(f"clean {patch.target.title}\n")
        return 0
    with resumable(context):
        removal.carry_out(plan, is_releasing=args.release_waiting, seconds=args.wait)
    context.stdout.write("the rest is Helm's\n" if is_helms else "fairlead is removed\n")
    return 0
