"""`fairlead admission-webhook`: the admission rules of shared GPUs for API servers that have no admission
policies of version v1.
"""

from __future__ import annotations

import argparse

from fairlead.cli.frame.context import Context
from fairlead.cli.servers.flags import add_listen

NAME = "admission-webhook"
READS_A_CLUSTER = False
HELP = """Answer an API server's AdmissionReviews (v1): /scheduler sends new pods that ask for shared GPU memory and name no scheduler to
fairlead-scheduler, /grants refuses annotations that only Fairlead writes. For servers older than 1.36, which have no
MutatingAdmissionPolicy v1; docs/gpu-sharing.md says how to install it.

It needs no cluster and no rights. The certificate is read again when its files change."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_listen(parser, ":8443")
    parser.add_argument("--tls-cert-file", metavar="FILE", required=True, help="certificate (PEM) for the name of its Service")
    parser.add_argument("--tls-private-key-file", metavar="FILE", required=True, help="the key of the certificate (PEM)")


def run(args: argparse.Namespace, context: Context) -> int:
    return context.world.run_process(NAME, args)
