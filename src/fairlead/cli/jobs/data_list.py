"""`arena data list` lists the bound claims of a namespace, which `--data` mounts.

See docs/spec/arena-cli.md#data.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from fairlead.cli.frame.context import Context
from fairlead.cli.frame.flags import add_all_namespaces, report_deprecations
from fairlead.cli.frame.object_names import NO_API_SERVER_HINT, warn_if_absent
from fairlead.errors import UserError

if TYPE_CHECKING:
    from fairlead.model.jobs.datasets import Claim

NAME = "data list"
HELP = """List the bound persistent volume claims, which jobs can mount with --data.

The table shows their annotations `description` and `owner` and, where Fluid is installed, which of
them are cached: the data sets over a claim, or Yes for the claim of a data set."""

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
    words = None
    if found.data_sets is not None:
        from fairlead.rules.data.mounts import acceleration_words

        words = acceleration_words(claims, found.data_sets)
    context.stdout.write(
        claims_table(claims, found.taken_at, words, has_namespace=args.all_namespaces)
    )
    return 0


def claims_table(
    claims: Sequence[Claim],
    now: float,
    accelerated: Mapping[tuple[str, str], str] | None = None,
    *,
    has_namespace: bool,
) -> str:
    """`accelerated`: by namespace and name, the last column; None = the table has none, as
    arena's.
    """
    from fairlead.cli.frame.text import short_duration
    from fairlead.wire.text.tabwriter import render_rows

    heads = ("NAME", *("NAMESPACE",) * has_namespace, "ACCESSMODE", "DESCRIPTION", "OWNER", "AGE")
    rows = [(*heads, *([] if accelerated is None else ["ACCELERATED"]))]
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
                *([] if accelerated is None else [accelerated[claim.namespace, claim.name]]),
            )
        )
    return render_rows(rows)
