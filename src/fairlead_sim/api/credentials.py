"""What clients need to use the laptop's API server: an authority, a token, a kubeconfig.

Made anew at every start and kept in memory, unless the world is kept: then clients of its last life
should still be let in. Private keys touch the disk only there, and for the moment in which the TLS
library, which reads nothing but files, loads them. The kubeconfig holds the token, so it is
readable by its owner alone.
"""

from __future__ import annotations

import base64
import ipaddress
import secrets
import ssl
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from fairlead.errors import UserError
from fairlead.settings import LAPTOP_AUTHORITY, LAPTOP_CONTEXT, LAPTOP_USER

VALID_DAYS: Final = 365
_CLOCK_SKEW: Final = timedelta(days=1)
"""How far a clock may be set back without invalidating the credentials."""
_ENOUGH: Final = timedelta(days=30)
_NAMES: Final = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class ServerCredentials:
    """What the server is known by.

    `authority` is the PEM of its certificate authority, `server` that of its certificate and key;
    `signing_key` signs the tokens of ServiceAccounts.
    """

    authority: bytes
    token: str
    server: bytes
    signing_key: bytes

    @property
    def ssl(self) -> ssl.SSLContext:
        return _context(self.server)


def make_credentials() -> ServerCredentials:
    """A new authority, a server certificate for the loopback names, and a random token."""
    authority_key, server_key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, LAPTOP_AUTHORITY)])
    authority = _authority(name, authority_key)
    certificate = _server(name, authority_key, server_key)
    key = server_key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    pair = certificate.public_bytes(serialization.Encoding.PEM) + key
    return ServerCredentials(
        authority.public_bytes(serialization.Encoding.PEM),
        secrets.token_urlsafe(32),
        pair,
        secrets.token_bytes(32),
    )


def render_credentials(credentials: ServerCredentials) -> str:
    """All of them as text: as secret as a private key."""
    return msgspec.json.encode(credentials).decode()


def parse_credentials(text: str, now: float) -> ServerCredentials | None:
    """What `render_credentials` wrote; None when the certificate ends within a month.

    Raises UserError when it is not valid yet, because no client would believe it, and ValueError
    for anything else.
    """
    found = msgspec.json.decode(text, type=ServerCredentials)
    certificate = x509.load_pem_x509_certificate(found.server)
    if (begins := certificate.not_valid_before_utc.timestamp()) > now:
        detail = (
            f"this machine's clock is behind: it shows {_utc(now)}, and the world's certificate "
            f"is valid from {_utc(begins)}"
        )
        raise UserError(detail, "set the clock, or begin another world in another directory")
    return (
        found
        if certificate.not_valid_after_utc > datetime.fromtimestamp(now, UTC) + _ENOUGH
        else None
    )


def kubeconfig_entries(
    server: str, credentials: ServerCredentials, extensions: Mapping[str, Any] | None = None
) -> dict[str, dict[str, Any]]:
    """By section of a kubeconfig the one entry of a laptop.

    `extensions` of its cluster are for programs that know their names.
    """
    cluster: dict[str, Any] = {
        "server": server,
        "certificate-authority-data": base64.b64encode(credentials.authority).decode(),
    }
    if extensions:
        cluster["extensions"] = [
            {"name": name, "extension": extension} for name, extension in extensions.items()
        ]
    context = {"cluster": LAPTOP_CONTEXT, "user": LAPTOP_USER, "namespace": "default"}
    return {
        "clusters": {"name": LAPTOP_CONTEXT, "cluster": cluster},
        "users": {"name": LAPTOP_USER, "user": {"token": credentials.token}},
        "contexts": {"name": LAPTOP_CONTEXT, "context": context},
    }


def render_kubeconfig(entries: Mapping[str, Mapping[str, Any]]) -> bytes:
    """A kubeconfig (JSON, which is YAML) of these entries alone."""
    sections = {section: [entry] for section, entry in entries.items()}
    kubeconfig = {
        "apiVersion": "v1",
        "kind": "Config",
        **sections,
        "current-context": entries["contexts"]["name"],
    }
    return msgspec.json.format(msgspec.json.encode(kubeconfig)) + b"\n"


def _utc(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
    )
    builder = builder.serial_number(x509.random_serial_number())
    return builder.not_valid_before(now - _CLOCK_SKEW).not_valid_after(
        now + timedelta(days=VALID_DAYS)
    )


def _authority(name: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.Certificate:
    usage = x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=True,
        crl_sign=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
    builder = _builder(name, name, key).add_extension(
        x509.BasicConstraints(ca=True, path_length=0), critical=True
    )
    builder = builder.add_extension(
        x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False
    )
    return builder.add_extension(usage, critical=True).sign(key, hashes.SHA256())


def _server(
    issuer: x509.Name, authority_key: ec.EllipticCurvePrivateKey, key: ec.EllipticCurvePrivateKey
) -> x509.Certificate:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "fairlead laptop API server")])
    alternatives: list[x509.GeneralName] = []
    for name in _NAMES:
        is_address = name[0].isdigit() or ":" in name
        alternatives.append(
            x509.IPAddress(ipaddress.ip_address(name)) if is_address else x509.DNSName(name)
        )
    builder = _builder(subject, issuer, key).add_extension(
        x509.SubjectAlternativeName(alternatives), critical=False
    )
    builder = builder.add_extension(
        x509.BasicConstraints(ca=False, path_length=None), critical=True
    )
    issuer_key = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key())
    builder = builder.add_extension(issuer_key, critical=False)
    usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
    return builder.add_extension(usage, critical=False).sign(authority_key, hashes.SHA256())


def _context(pair_pem: bytes) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    with tempfile.TemporaryDirectory(prefix="fairlead-") as folder:
        pair = Path(folder, "server.pem")
        pair.touch(mode=0o600)
        pair.write_bytes(pair_pem)
        context.load_cert_chain(pair)
    return context
