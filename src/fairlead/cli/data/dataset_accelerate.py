"""`fairlead dataset accelerate` (docs/spec/datasets.md#acceleration)."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from fairlead.cli.data.cache_making import add_cache_flags, make_cache, read_quota
from fairlead.cli.data.waiting import data_of
from fairlead.cli.frame.context import ClusterData, Context
from fairlead.cli.frame.findings import check_output
from fairlead.errors import UserError

if TYPE_CHECKING:
    from fairlead.model.jobs.acceleration import Acceleration

NAME = "dataset accelerate"
HELP = """Cache a volume claim: make a data set of Fluid over it, and an Alluxio runtime for it.

All checks are made before anything is written; --dry-run prints them and the objects. The claim and
its data stay as they are. Mount the claim that Fluid makes, which has the data set's name, in pods
that shall read the cache."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("claim", metavar="CLAIM", help="the claim, in the chosen namespace")
    parser.add_argument(
        "--name", metavar="NAME", default="", help="of the data set (default CLAIM-acc)"
    )
    parser.add_argument(
        "--sub-path", metavar="DIR", default="", help="only this folder of the claim"
    )
    add_cache_flags(
        parser, "the claim's size shared among the workers, 64Gi at most; 150Gi with SSD"
    )


def run(args: argparse.Namespace, context: Context) -> int:
    check_output(args)
    cluster = data_of(context)
    asked = _asked(args, context)
    return accelerate(asked, cluster, args, context)


def accelerate(
    asked: Acceleration, cluster: ClusterData, args: argparse.Namespace, context: Context
) -> int:
    """Make the data set over a claim. `args`: the flags of a cache."""
    from fairlead.rules.data.acceleration import check_acceleration, chosen_acceleration

    facts = cluster.facts(asked.namespace, asked.claim, asked.name)
    chosen = chosen_acceleration(
        facts, asked, has_workers=bool(args.workers), has_quota=bool(args.quota)
    )
    return make_cache(chosen, facts, check_acceleration(facts, chosen), args, context)


def checked_folder(flag: str, text: str) -> str:
    """Raises UserError for what is no folder of a claim."""
    folder = text.strip("/")
    if any(part in ("", ".", "..") for part in folder.split("/")) and folder:
        raise UserError(f"{flag} is `{text}`", "a folder of the claim, e.g. `images`")
    return folder


def _asked(args: argparse.Namespace, context: Context) -> Acceleration:
    from fairlead.model.jobs.acceleration import Acceleration
    from fairlead.rules.data.acceleration import default_name

    quota = read_quota(args)
    folder = checked_folder("--sub-path", args.sub_path)
    name = args.name or default_name(args.claim)
    return Acceleration(
        context.world.namespace(), args.claim, name, folder, args.workers, args.medium, quota
    )
