"""`fairlead scheduler-extender`: what a stock kube-scheduler asks about pods that share GPUs."""

from __future__ import annotations

import argparse

from fairlead import settings
from fairlead.cli.frame.context import Context
from fairlead.cli.servers.flags import add_lease, add_listen, add_rate

NAME = "scheduler-extender"
HELP = """Extend a stock kube-scheduler for pods that share GPUs: filter and score nodes by room on
one GPU, choose pods to preempt, and bind pods with their GPUs. The `extenders` of kube-scheduler
name it (deploy/gpushare-scheduler.yaml).

It follows the cluster of --kubeconfig (else KUBECONFIG, ~/.kube/config, in-cluster). Of several
processes, the holder of the Lease fairlead-gpushare answers. Clients that are neither on loopback
nor have a client certificate may only read /inspect and /metrics."""
_POLICIES = ("binpack", "spread")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    default = (
        f"{settings.LOOPBACK}:${{PORT}}, else "
        f"{settings.LOOPBACK}:{settings.SCHEDULER_EXTENDER_PORT}"
    )
    add_listen(parser, "", default)
    add("--tls-cert-file", metavar="FILE", default="", help="certificate (PEM) to serve HTTPS with")
    add(
        "--tls-private-key-file",
        metavar="FILE",
        default="",
        help="the key of the certificate (PEM)",
    )
    add(
        "--client-ca-file",
        metavar="FILE",
        default="",
        help="authority (PEM) of clients on other machines that may place pods",
    )
    add_lease(parser)
    add(
        "--node-policy",
        choices=_POLICIES,
        default="binpack",
        metavar="POLICY",
        help="choice of node: binpack or spread (default binpack)",
    )
    add(
        "--gpu-policy",
        choices=_POLICIES,
        default="binpack",
        metavar="POLICY",
        help="choice of GPU: binpack or spread (default binpack)",
    )
    add(
        "--memory-unit",
        choices=("GiB", "MiB"),
        default="GiB",
        metavar="UNIT",
        help="unit in which pods of this cluster request GPU memory (default GiB)",
    )
    add_rate(parser, per_second=100, burst=200, what="requests")


def run(args: argparse.Namespace, context: Context) -> int:
    return context.world.run_process(NAME, args)
