"""`fairlead usage-recorder`: records which pods hold what, for usage and cost."""

from __future__ import annotations

import argparse

from fairlead import settings
from fairlead.cli.frame.context import Context
from fairlead.cli.servers.flags import add_gpu_source, add_lease, add_listen, add_prometheus
from fairlead.cli.servers.sign_in_flags import add_store

NAME = "usage-recorder"
HELP = """Record which pods hold what of which node, and how busy their GPUs are, in the store of
the console: usage, cost and the cluster as it was are computed from it.

It follows the cluster of --kubeconfig (else KUBECONFIG, ~/.kube/config, in-cluster). Of several
processes, the holder of the Lease fairlead-usage-recorder records. A SQLite store is for one
process: there, start the console with --usage-recorder instead."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_listen(parser, f"{settings.LOOPBACK}:{settings.USAGE_RECORDER_PORT}")
    add_lease(parser)
    add_store(parser, "where usage is kept")
    add_time_zone(parser)
    add_gpu_source(parser)
    add_prometheus(parser)


def add_time_zone(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--billing-time-zone",
        metavar="ZONE",
        default="UTC",
        help="time zone in which a billing day begins at midnight, such as Asia/Shanghai "
        "(default UTC); the first recorder stores it for good",
    )


def run(args: argparse.Namespace, context: Context) -> int:
    return context.world.run_process(NAME, args)
