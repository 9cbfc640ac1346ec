"""`fairlead install`: writes all objects of Fairlead to a cluster."""

from __future__ import annotations

import argparse

from fairlead.cli.frame.context import Context
from fairlead.cli.installation import chosen as shared

NAME = "install"
HELP = """Install Fairlead in a cluster, without Helm. All objects are checked first; if the cluster
refuses one, nothing is written. The ConfigMap fairlead-installation in the value `namespace`
(fairlead-system) lists what was written. After an interruption run the same command again."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    shared.add_arguments(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    wanted = shared.chosen(args, context)
    if shared.is_print_only(args):
        return shared.print_objects(context, wanted)
    cluster = shared.target(context)
    shared.refuse_other(shared.installer(context, cluster).inventory(wanted.namespace), wanted)
    return shared.write(args, context, cluster, wanted, by="fairlead install")
