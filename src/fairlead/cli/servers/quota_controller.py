"""`fairlead quota-controller`: admits, and evicts, what the quota tree says."""

from __future__ import annotations

import argparse

from fairlead import settings
from fairlead.cli.frame.context import Context
from fairlead.cli.servers.flags import add_lease, add_listen, whole

NAME = "quota-controller"
HELP = """Hold the cluster to its ElasticQuotaTree: take the quota gate from pods whose turn it is, evict or suspend what borrows when
the owner of the guarantee comes, and say of every pod that waits why it does (deploy/quota-controller.yaml).

It follows the cluster of --kubeconfig (else KUBECONFIG, ~/.kube/config, in-cluster). Of several, the one that holds the Lease
fairlead-quota works; while none does, pods of the tree's namespaces wait and what runs is left alone."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add_listen(parser, f"{settings.LOOPBACK}:{settings.QUOTA_CONTROLLER_PORT}")
    add_lease(parser)
    add("--kube-api-qps", metavar="N", type=whole(1, 10_000), default=300, help="writes a second to the API server (default 300)")
    add("--kube-api-burst", metavar="N", type=whole(1, 100_000), default=500, help="so many of them at once (default 500)")


def run(args: argparse.Namespace, context: Context) -> int:
    return context.world.run_process(NAME, args)
