"""`fairlead doctor`: checks of a cluster before an installation of Fairlead, and of the
installation.
"""

from __future__ import annotations

import argparse
from functools import partial

from fairlead.cli.frame.context import Context
from fairlead.cli.frame.findings import add_output, check_output, print_findings
from fairlead.cli.installation.chosen import NO_CLUSTER, add_values, chosen
from fairlead.errors import UserError

NAME = "doctor"
HELP = """Check a cluster before Fairlead is installed, and the installation after that: versions,
rights, admission, PodSecurity, nodes, other device plugins, objects, workloads, Leases,
certificates. Each check is ok, warn or BAD with a hint, or ? if it could not be made. Nothing is
written: objects are applied in a dry run. The exit status is 1 if any check is BAD."""
_QUOTA = "`fairlead quota doctor` checks the quota tree and its controller."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_values(parser)
    add_output(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    from fairlead.rules.installation.doctor import examine

    check_output(args)
    facts = context.world.installation_facts(partial(chosen, args, context))
    if facts is None:
        raise UserError("there is no cluster to examine", NO_CLUSTER)
    return print_findings(examine(facts), args, context, last=_QUOTA)
