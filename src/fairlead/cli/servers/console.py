"""`fairlead console`: the boards of a cluster, served to a browser."""

from __future__ import annotations

import argparse

from fairlead.cli.frame.context import Context
from fairlead.cli.frame.flags import BooleanFlag, chart_folder
from fairlead.cli.servers.flags import add_gpu_source, add_lease, add_listen, add_prometheus
from fairlead.cli.servers.sign_in_flags import add_sign_in
from fairlead.cli.servers.usage_recorder import add_time_zone

NAME = "console"
HELP = """Serve the console of a cluster. Without sign-in its boards are read only.

It follows the cluster of --kubeconfig (else KUBECONFIG, ~/.kube/config, in-cluster). Charts come
from Prometheus if one is configured, else from the last hour that the console has recorded.

Without sign-in every client is an administrator, and the console listens only on addresses of this
machine. With --sign-in on users sign in with a Kubernetes token, at an OpenID Connect provider
(--oidc-issuer), or, where only this machine can reach the console, with a one-time code that it
prints."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_listen(parser, "127.0.0.1:8080")
    add_sign_in(parser)
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
    parser.add_argument(
        "--charts",
        metavar="ADDRESS",
        type=chart_folder,
        default="",
        help="folder of charts in a registry (oci://registry.example.com/charts), with which the "
        "page Components fills in addresses",
    )
    parser.add_argument(
        "--usage-recorder",
        action=BooleanFlag,
        help="also record usage, under the Lease of `fairlead usage-recorder`; with a SQLite "
        "store, which is for one process; needs --sign-in on",
    )
    add_lease(parser)
    add_time_zone(parser)
    add_gpu_source(parser)
    add_prometheus(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    return context.world.run_process(NAME, args)
