"""`fairlead admission-webhook`: the validation of quota trees, and admission rules.

It applies the rules of quota and of shared GPUs on API servers that have no admission policies of
version v1.
"""

from __future__ import annotations

import argparse

from fairlead.cli.frame.context import Context
from fairlead.cli.servers.flags import add_listen, add_namespaces

NAME = "admission-webhook"
READS_A_CLUSTER = False
HELP = """Serve admission webhooks (AdmissionReview v1): /quota-tree refuses a quota tree with a
fault. For API servers before 1.36, which have no MutatingAdmissionPolicy v1: /scheduler assigns
fairlead-scheduler to new pods that request shared GPU memory and name no scheduler, /asks refuses
new pods that no node can run, /grants refuses annotations that only Fairlead writes, /quota-gate
adds the quota gate to new pods, and /quota-guard refuses changes that would bypass quota.
docs/how-to/gpu-sharing.md and docs/how-to/quota-operations.md describe the installation.

It creates and renews its own certificate, keeps it in the Secret fairlead-admission-webhook of
--namespace, and writes it into the webhook configurations. With a certificate of your own,
which is read again when its files change, it does none of that."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_listen(parser, ":8443")
    parser.add_argument(
        "--tls-cert-file",
        metavar="FILE",
        default="",
        help="a certificate of your own (PEM) for the name of its Service",
    )
    parser.add_argument(
        "--tls-private-key-file",
        metavar="FILE",
        default="",
        help="the key of that certificate (PEM)",
    )
    add_namespaces(parser, "its Service, its Secret and Fairlead's accounts")
    client_ca = "answer only clients with a certificate of this authority (PEM); probes need none"
    parser.add_argument("--client-ca", metavar="FILE", default="", help=client_ca)


def run(args: argparse.Namespace, context: Context) -> int:
    return context.world.run_process(NAME, args)
