"""`fairlead scheduler-extender`: what a stock kube-scheduler asks about pods that share GPUs."""

from __future__ import annotations

import argparse

from fairlead import settings
from fairlead.cli.frame.context import Context
from fairlead.cli.servers.flags import add_lease, add_listen, whole

NAME = "scheduler-extender"
HELP = """Answer a stock kube-scheduler about pods that share GPUs: which nodes have room on one card, which is best, whom to evict; and
bind them with their cards. kube-scheduler's `extenders` name it (deploy/gpushare-scheduler.yaml).

It follows the cluster of --kubeconfig (else KUBECONFIG, ~/.kube/config, in-cluster). Of several, the one that holds the Lease
fairlead-gpushare answers. Whoever is neither on loopback nor has a client certificate may only read /inspect and /metrics."""
_POLICIES = ("binpack", "spread")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    default = f"{settings.LOOPBACK}:${{PORT}}, else {settings.LOOPBACK}:{settings.SCHEDULER_EXTENDER_PORT}"
    add_listen(parser, "", default)
    add("--tls-cert-file", metavar="FILE", default="", help="certificate (PEM) to serve HTTPS with")
    add("--tls-private-key-file", metavar="FILE", default="", help="the key of the certificate (PEM)")
    add("--client-ca-file", metavar="FILE", default="", help="authority (PEM) of clients that may place pods from other machines")
    add_lease(parser)
    add("--node-policy", choices=_POLICIES, default="binpack", metavar="POLICY", help="choice of node: binpack or spread (default binpack)")
    add("--gpu-policy", choices=_POLICIES, default="binpack", metavar="POLICY", help="choice of GPU: binpack or spread (default binpack)")
    add("--memory-unit", choices=("GiB", "MiB"), default="GiB", metavar="UNIT", help="in which pods of this cluster ask (default GiB)")
    add("--kube-api-qps", metavar="N", type=whole(1, 10_000), default=100, help="requests a second to the API server (default 100)")
    add("--kube-api-burst", metavar="N", type=whole(1, 100_000), default=200, help="so many of them at once (default 200)")


def run(args: argparse.Namespace, context: Context) -> int:
    return context.world.run_process(NAME, args)
