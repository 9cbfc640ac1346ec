"""`fairlead cluster-exporter`: Prometheus metrics of nodes, GPUs, jobs and quotas."""

from __future__ import annotations

import argparse

from fairlead.cli.frame.context import Context
from fairlead.cli.frame.flags import BooleanFlag
from fairlead.cli.servers.flags import add_gpu_source, add_lease, add_listen, add_prometheus, whole
from fairlead.errors import UserError

NAME = "cluster-exporter"
HELP = """Serve Prometheus metrics about the nodes, GPUs, jobs and quotas of a cluster on /metrics.

It follows the cluster of --kubeconfig (else KUBECONFIG, ~/.kube/config, in-cluster); a scrape makes
no request to the API server. One per cluster is enough. Of several that are started with
--leader-elect, the process that holds the Lease fairlead-cluster-exporter prints the cluster, and
the others only their own state, so that no sum counts a GPU twice. A process that cannot renew the
Lease stops within four seconds.

Its own metrics have the node of the variable NODE_NAME, else the host's name."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_listen(parser, ":9401")
    parser.add_argument(
        "--compat",
        metavar="FAMILIES",
        default="arena",
        help="arena beside the native families, or none (default arena)",
    )
    parser.add_argument(
        "--max-jobs",
        metavar="N",
        type=whole(1, 1_000_000),
        default=5000,
        help="newest jobs with series of their own (default 5000)",
    )
    parser.add_argument(
        "--leader-elect",
        action=BooleanFlag,
        help="print the cluster only while this process holds the Lease",
    )
    add_lease(parser)
    add_gpu_source(parser)
    add_prometheus(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    if args.identity and not args.leader_elect:
        raise UserError(
            "`--identity` names a process in the Lease, but no Lease is used",
            "add --leader-elect",
        )
    return context.world.run_process(NAME, args)
