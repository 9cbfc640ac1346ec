"""`fairlead upgrade`: brings an installation to this version and to other values."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from fairlead.cli.frame.context import Context
from fairlead.cli.frame.flags import BooleanFlag
from fairlead.cli.installation import chosen as shared
from fairlead.errors import UserError

if TYPE_CHECKING:
    from fairlead.ports import InstallationTarget

NAME = "upgrade"
HELP = """Upgrade an installation of `fairlead install` to this version, or change its values.
Without --values the values of the installation are kept. Objects that the new version does not have
are removed. After an interruption run the same command again.

An older version than the installed one is refused. With --allow-downgrade it takes the installation
over, unless it does not understand what the newer one has written, or fields of quota trees would
be lost."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    shared.add_arguments(parser)
    parser.add_argument(
        "--allow-downgrade",
        action=BooleanFlag,
        help="go back to this version where a newer one is installed, if nothing is lost",
    )
    parser.add_argument(
        "--helm-hook",
        action=BooleanFlag,
        help="check only whether a Helm release may be brought to this version and these values; "
        "the chart's hook runs this before `helm upgrade` and `helm rollback`",
    )


def run(args: argparse.Namespace, context: Context) -> int:
    if args.helm_hook:
        return _check_release(args, context)
    is_print_only = shared.is_print_only(args)
    cluster = shared.target(context)
    before = shared.installer(context, cluster).inventory()
    if before is None:
        raise _nothing(cluster)
    wanted = shared.chosen(args, context, before.values)
    if is_print_only:
        return shared.print_objects(context, wanted)
    return shared.write(
        args,
        context,
        cluster,
        wanted,
        by="fairlead upgrade",
        may_go_back=args.allow_downgrade,
    )


def _check_release(args: argparse.Namespace, context: Context) -> int:
    from fairlead import __version__
    from fairlead.apps.installation.installer import Wanted
    from fairlead.apps.installation.release_check import check_release

    wanted = Wanted(__version__, shared.chosen(args, context))
    context.stdout.write(f"{check_release(shared.target(context), wanted)}\n")
    return 0


def _nothing(cluster: InstallationTarget) -> UserError:
    from fairlead.model.installation import SYSTEM_NAMESPACE
    from fairlead.rules.installation.refusals import refuse_releases
    from fairlead.settings import HELM_CHART

    releases = cluster.helm_releases(SYSTEM_NAMESPACE, HELM_CHART)
    refusal = refuse_releases(releases)
    if refusal is not None:
        return UserError(refusal.reason, f"`helm upgrade {releases[0]}` changes it")
    return UserError("there is no installation to upgrade", "`fairlead install` makes one")
