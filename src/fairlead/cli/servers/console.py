"""`fairlead console`: the boards of a cluster, served to a browser."""

from __future__ import annotations

import argparse

from fairlead.cli.frame.context import Context
from fairlead.cli.frame.flags import BooleanFlag
from fairlead.cli.servers.flags import add_gpu_source, add_listen, add_prometheus

NAME = "console"
HELP = """Serve the console of a cluster: nine boards, read only.

It follows the cluster of --kubeconfig (else KUBECONFIG, ~/.kube/config, in-cluster). Charts come
from Prometheus if one is configured, else from the last hour that the console has recorded. There
is no sign-in yet: the console listens on addresses that other machines can reach only
with --insecure-listen."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_listen(parser, "127.0.0.1:8080")
    parser.add_argument(
        "--insecure-listen",
        action=BooleanFlag,
        help=(
            "listen on addresses that other machines can reach, "
            "behind a proxy that authenticates users"
        ),
    )
    parser.add_argument(
        "--base-path",
        metavar="PATH",
        default="/",
        help="path below which a proxy serves it (default /)",
    )
    parser.add_argument(
        "--allowed-host",
        metavar="NAME",
        action="append",
        default=[],
        help="host name that a proxy uses for it; repeatable",
    )
    add_gpu_source(parser)
    add_prometheus(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    return context.world.run_process(NAME, args)
