"""`fairlead people-controller`: gives users their ServiceAccounts and rights."""

from __future__ import annotations

import argparse

from fairlead import settings
from fairlead.cli.frame.context import Context
from fairlead.cli.servers.flags import add_lease, add_listen, add_namespaces, add_rate

NAME = "people-controller"
HELP = """Give the users of the cluster their rights: a ServiceAccount for each User, and bindings
in the namespaces of the quota leaves that the user's UserGroups have.

It follows the cluster of --kubeconfig (else KUBECONFIG, ~/.kube/config, in-cluster). Of several
processes, the holder of the Lease fairlead-people is active; while there is none, rights stay as
they are."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_listen(parser, f"{settings.LOOPBACK}:{settings.PEOPLE_CONTROLLER_PORT}")
    add_lease(parser)
    add_namespaces(parser, "Fairlead's pods, in which no user gets rights because of a leaf")
    add_rate(parser, per_second=300, burst=500)


def run(args: argparse.Namespace, context: Context) -> int:
    return context.world.run_process(NAME, args)
