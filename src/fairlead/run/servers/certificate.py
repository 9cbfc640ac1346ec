"""TLS of servers with a certificate from files."""

from __future__ import annotations

import argparse
from pathlib import Path

from fairlead.apps.serving_certificate import ServingCertificate
from fairlead.errors import UserError


def serving_certificate(args: argparse.Namespace) -> ServingCertificate | None:
    """TLS, if flags ask for it.

    Clients with a certificate of `--client-ca-file` may place pods, others may read.
    """
    client_ca_file = getattr(args, "client_ca_file", "")
    if not args.tls_cert_file and not args.tls_private_key_file and not client_ca_file:
        return None
    if not args.tls_cert_file or not args.tls_private_key_file:
        raise UserError(
            "TLS needs a certificate and its key",
            "add `--tls-cert-file FILE --tls-private-key-file FILE`",
        )
    client_ca = Path(client_ca_file) if client_ca_file else None
    return ServingCertificate(Path(args.tls_cert_file), Path(args.tls_private_key_file), client_ca)
