"""`fairlead api-server`: the simulated cluster alone, for kubectl and other programs."""

from __future__ import annotations

import argparse

from fairlead.cli.frame.context import Context
from fairlead.cli.frame.flags import BooleanFlag
from fairlead.cli.servers.flags import add_listen, add_scenario, path_name

NAME = "api-server"
READS_A_CLUSTER = False
HELP = """Serve a simulated cluster as a Kubernetes API over TLS, and write a kubeconfig for it.

Each start creates a new certificate authority and token. The cluster is kept in memory and is lost
when the process ends."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_listen(parser, "127.0.0.1:6443")
    parser.add_argument(
        "--insecure-listen",
        action=BooleanFlag,
        help="listen where others can reach it (the token still guards it)",
    )
    add_scenario(parser)
    parser.add_argument(
        "--kubeconfig",
        metavar="FILE",
        type=path_name,
        help="where to write the kubeconfig (default ./fairlead.kubeconfig); "
        "into one that exists the context `fairlead` is merged, and taken out at the end",
    )


def run(args: argparse.Namespace, context: Context) -> int:
    return context.world.run_process(NAME, args)
