"""`arena data list` lists the bound claims of a namespace, which `--data` mounts.

See docs/spec/arena-cli.md#data.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from fairlead.cli.frame.context import Context
from fairlead.cli.frame.flags import add_all_namespaces, report_deprecations
from fairlead.cli.frame.object_names import NO_API_SERVER_HINT, warn_if_absent
from fairlead.errors import UserError

if TYPE_CHECKING:
    from fairlead.model.jobs.datasets import Claim

NAME = "data list"
HELP = """List the bound persistent volume claims, which jobs can mount with --data.

The table shows their annotations `description` and `owner`."""

_MODES: Final = ("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_all_namespaces(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    report_deprecations(args, context.messages)
    cluster = context.world.servings()
    if cluster is None:
        raise UserError(
            "there is no API server to ask for volume claims",
            NO_API_SERVER_HINT,
        )
    found = cluster.read_claims("" if args.all_namespaces else context.world.namespace())
    if not found.claims and not args.all_namespaces:
        warn_if_absent(context, context.world.namespace())
    claims = sorted(
        (claim for claim in found.claims if claim.is_ready),
        key=lambda claim: (claim.namespace, claim.name),
    )
    context.stdout.write(claims_table(claims, found.taken_at, has_namespace=args.all_namespaces))
    return 0


def claims_table(claims: Sequence[Claim], now: float, *, has_namespace: bool) -> str:
    from fairlead.cli.frame.text import short_duration
    from fairlead.wire.text.tabwriter import render_rows

    rows = [("NAME", *("NAMESPACE",) * has_namespace, "ACCESSMODE", "DESCRIPTION", "OWNER", "AGE")]
    for claim in claims:
        modes = ",".join(mode for mode in _MODES if mode in claim.access_modes)
        age = "<unknown>" if claim.created_at is None else short_duration(now - claim.created_at)
        rows.append(
            (
                claim.name,
                *(claim.namespace,) * has_namespace,
                modes,
                " ".join(claim.description.split()),
                " ".join(claim.owner.split()),
                age,
            )
        )
    return render_rows(rows)
