"""`fairlead quota-controller`: admits and evicts pods according to the quota tree."""

from __future__ import annotations

import argparse

from fairlead import settings
from fairlead.cli.frame.context import Context
from fairlead.cli.servers.flags import add_lease, add_listen, add_namespaces, add_rate

NAME = "quota-controller"
HELP = """Enforce the cluster's ElasticQuotaTree: remove the quota gate from pods that are admitted,
evict or suspend borrowers when the owner of the guarantee needs it, and write the reason to every
waiting pod (deploy/quota-controller.yaml).

It follows the cluster of --kubeconfig (else KUBECONFIG, ~/.kube/config, in-cluster). Of several
processes, the holder of the Lease fairlead-quota is active; while there is none, pods of the tree's
namespaces wait, and running pods continue."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_listen(parser, f"{settings.LOOPBACK}:{settings.QUOTA_CONTROLLER_PORT}")
    add_lease(parser)
    add_namespaces(parser, "Fairlead's pods, which quota leaves alone")
    add_rate(parser, per_second=300, burst=500)


def run(args: argparse.Namespace, context: Context) -> int:
    return context.world.run_process(NAME, args)
