"""A throw-away certificate authority for tests: PEM bytes of a CA and of certificates that it
signs.
"""

from __future__ import annotations

import datetime
import ipaddress
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


class Pair(NamedTuple):
    certificate_pem: bytes
    key_pem: bytes


class Authority:
    def __init__(self, name: str = "test-ca") -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        builder = self._builder(self._name, self._key.public_key(), days=1).add_extension(
            x509.BasicConstraints(True, None), critical=True
        )
        self.pem = builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    def issue(
        self,
        common_name: str,
        *,
        days: int = 1,
        begins_in_days: int = -30,
        key_password: bytes | None = None,
    ) -> Pair:
        """A certificate for clients and for a server on loopback. With negative days it expired
        that long ago.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name(
            [
                x509.NameAttribute(NameOID.ORGANIZATION_NAME, "team"),
                x509.NameAttribute(NameOID.COMMON_NAME, common_name),
            ]
        )
        names = x509.SubjectAlternativeName(
            [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        )
        certificate = (
            self._builder(subject, key.public_key(), days, begins_in_days)
            .add_extension(names, critical=False)
            .sign(self._key, hashes.SHA256())
        )
        encryption = (
            serialization.BestAvailableEncryption(key_password)
            if key_password
            else serialization.NoEncryption()
        )
        return Pair(
            certificate.public_bytes(serialization.Encoding.PEM),
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption
            ),
        )

    def _builder(
        self,
        subject: x509.Name,
        key: ec.EllipticCurvePublicKey,
        days: int,
        begins_in_days: int = -30,
    ) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now + datetime.timedelta(days=begins_in_days))
            .not_valid_after(now + datetime.timedelta(days=days))
        )
