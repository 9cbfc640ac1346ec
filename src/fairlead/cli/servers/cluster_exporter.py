"""`fairlead cluster-exporter`: Prometheus metrics about a cluster's nodes, GPUs, jobs and quotas."""

from __future__ import annotations

import argparse

from fairlead.cli.frame.context import Context
from fairlead.cli.servers.flags import add_gpu_source, add_listen, add_prometheus, whole

NAME = "cluster-exporter"
HELP = """Serve Prometheus metrics about the nodes, GPUs, jobs and quotas of a cluster on /metrics.

It follows the cluster of --kubeconfig (else KUBECONFIG, ~/.kube/config, in-cluster); a scrape makes no request to the API
server. One replica per cluster is enough."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_listen(parser, ":9401")
    parser.add_argument("--compat", metavar="FAMILIES", default="arena", help="arena beside the native families, or none (default arena)")
    parser.add_argument(
        "--max-jobs", metavar="N", type=whole(1, 1_000_000), default=5000, help="newest jobs with series of their own (default 5000)"
    )
    add_gpu_source(parser)
    add_prometheus(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    return context.world.run_process(NAME, args)
