"""`fairlead admission-webhook`: the judge of quota trees, and the admission rules of quota and of shared GPUs
for API servers that have no admission policies of version v1.
"""

from __future__ import annotations

import argparse

from fairlead.cli.frame.context import Context
from fairlead.cli.servers.flags import add_listen

NAME = "admission-webhook"
READS_A_CLUSTER = False
HELP = """Answer an API server's AdmissionReviews (v1): /quota-tree refuses a quota tree with a fault. For servers older than 1.36, which
have no MutatingAdmissionPolicy v1: /scheduler sends new pods that ask for shared GPU memory and name no scheduler to
fairlead-scheduler, /asks refuses new pods that no node can run, /grants refuses annotations that only Fairlead writes,
/quota-gate gives new pods the gate of quota, and /quota-guard refuses what would cheat quota. docs/how-to/gpu-sharing.md and
docs/how-to/quota-operations.md say how to install it.

Its certificate is made and renewed by itself, kept in the Secret fairlead-admission-webhook of fairlead-system, and put into the
webhook configurations. With a certificate of your own, which is read again when its files change, it does none of that."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_listen(parser, ":8443")
    parser.add_argument("--tls-cert-file", metavar="FILE", default="", help="a certificate of your own (PEM), for the name of its Service")
    parser.add_argument("--tls-private-key-file", metavar="FILE", default="", help="the key of that certificate (PEM)")
    told = "answer only clients with a certificate of this authority (PEM); probes need none"
    parser.add_argument("--client-ca", metavar="FILE", default="", help=told)


def run(args: argparse.Namespace, context: Context) -> int:
    return context.world.run_process(NAME, args)
