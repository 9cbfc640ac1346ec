"""Certificates of the test cluster: a throw-away certificate authority and the certificates that it
signs.

Kubernetes reads the common name as the user and each organization as a group.
"""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_LIFETIME = datetime.timedelta(days=7)


class KeyPair(NamedTuple):
    """Paths of a PEM certificate and its key."""

    certificate: Path
    key: Path


class Authority:
    """A certificate authority; its files are in one folder."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        certificate = (
            _builder(self._name, self._name, self._key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.certificate = folder / f"{name}.pem"
        self.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    def issue(
        self, common_name: str, organizations: Sequence[str] = (), names: Sequence[str] = ()
    ) -> KeyPair:
        """A key pair for a client and, with `names` (host names or addresses), for a server. The
        files are named after the common name.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        attributes = [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization)
            for organization in organizations
        ]
        subject = x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
        builder = _builder(subject, self._name, key)
        if names:
            builder = builder.add_extension(
                x509.SubjectAlternativeName([_general_name(name) for name in names]), critical=False
            )
        stem = common_name.replace(":", "-")
        pair = KeyPair(self._folder / f"{stem}.pem", self._folder / f"{stem}.key")
        pair.certificate.write_bytes(
            builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
        )
        _write_key(pair.key, key)
        return pair


def write_signing_key(path: Path) -> None:
    """A bare private key, which signs and checks the tokens of service accounts."""
    _write_key(path, ec.generate_private_key(ec.SECP256R1()))


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    path.touch(mode=0o600)
    # The older form (EC PRIVATE KEY): kube-apiserver accepts no EC key in PKCS 8 as a signing key.
    pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
    path.write_bytes(pem)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + _LIFETIME)
    )


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
