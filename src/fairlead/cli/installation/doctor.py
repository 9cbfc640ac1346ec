"""`fairlead doctor`: checks of a cluster before an installation of Fairlead, and of the
installation.
"""

from __future__ import annotations

import argparse
from functools import partial

from fairlead.cli.frame.context import Context
from fairlead.cli.frame.findings import add_output, check_output, print_findings
from fairlead.cli.installation.bundle import new_bundle, write_bundle
from fairlead.cli.installation.chosen import NO_CLUSTER, add_values, chosen
from fairlead.errors import UserError

NAME = "doctor"
HELP = """Check a cluster before Fairlead is installed, and the installation after that: versions,
rights, admission, PodSecurity, nodes, other device plugins, objects, workloads, Leases,
certificates. Each check is ok, warn or BAD with a hint, or ? if it could not be made. Nothing is
written: objects are applied in a dry run. The exit status is 1 if any check is BAD.

With --bundle FILE one archive (zip) has what a remote helper needs: what was found, the state of
the cluster, versions, values and the last lines of Fairlead's own logs. Secrets are left out or
hidden; names of namespaces, nodes, pods, images and users are in it: check it before you send it.
`fairlead up --from-snapshot FILE` replays it."""
_QUOTA = "`fairlead quota doctor` checks the quota tree and its controller."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_values(parser)
    add_output(parser)
    parser.add_argument(
        "--bundle",
        metavar="FILE",
        default="",
        help="also write an archive to send to others; an older bundle is replaced",
    )


def run(args: argparse.Namespace, context: Context) -> int:
    from fairlead.rules.installation.doctor import examine

    check_output(args)
    bundle = new_bundle(args.bundle, context) if args.bundle else None
    facts = context.world.installation_facts(partial(chosen, args, context))
    if facts is None:
        raise UserError("there is no cluster to examine", NO_CLUSTER)
    findings = examine(facts)
    status = print_findings(findings, args, context, last=_QUOTA)
    if bundle is not None:
        size = write_bundle(bundle, facts, findings, context)
        context.messages.info(f"wrote {args.bundle} ({size} bytes): check it before you pass it on")
    return status
