"""Fairlead's own certificate authority and the server certificate that it signs and renews.

The bundle contains earlier authorities, too, while they are valid: if one server already shows a
certificate of the new authority and another one still a certificate of the old, a client with the
bundle trusts both.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from msgspec import Struct

AUTHORITY_LIFE: Final = timedelta(days=3650)
SERVER_LIFE: Final = timedelta(days=90)
_USED: Final = 2 / 3
"""`_USED`: part of its life after which a certificate is replaced."""
_CLOCK_SKEW: Final = timedelta(days=1)
"""`_CLOCK_SKEW`: the difference between clocks at which a new certificate is still valid."""
_AUTHORITIES_MAX: Final = 3


class IssuedCertificate(Struct, frozen=True):
    """All in PEM. `bundle`: certificates of authorities, the one that signed first."""

    bundle: bytes
    authority_key: bytes
    certificate: bytes
    key: bytes


def issue(host: str, now: float, before: IssuedCertificate | None = None) -> IssuedCertificate:
    """A new certificate for `host`, from the existing authority, or from a new one if that is too
    old or does not exist.
    """
    at = datetime.fromtimestamp(now, UTC)
    known = _authorities(before)
    if (
        before is None
        or not known
        or _is_worn(known[0], at)
        or not _fits(known[0], before.authority_key)
    ):
        authority_key = ec.generate_private_key(ec.SECP256R1())
        authority = _signed(
            _builder(f"{host} authority", at, AUTHORITY_LIFE, authority_key, None),
            authority_key,
            None,
        )
        known = [authority, *(each for each in known if each.not_valid_after_utc > at)][
            :_AUTHORITIES_MAX
        ]
    else:
        authority_key, authority = _key(before.authority_key), known[0]
        known = known[:1]  # certificates of earlier ones were renewed long ago
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = _signed(_builder(host, at, SERVER_LIFE, key, authority), authority_key, host)
    bundle = b"".join(each.public_bytes(serialization.Encoding.PEM) for each in known)
    return IssuedCertificate(
        bundle, _pem(authority_key), certificate.public_bytes(serialization.Encoding.PEM), _pem(key)
    )


def is_due(issued: IssuedCertificate, host: str, now: float) -> bool:
    """Whether a new one is needed: two thirds of its life are over, or clients would reject it."""
    at = datetime.fromtimestamp(now, UTC)
    try:
        authority, certificate = (
            _authorities(issued)[0],
            x509.load_pem_x509_certificate(issued.certificate),
        )
        certificate.verify_directly_issued_by(authority)
        names = certificate.extensions.get_extension_for_class(
            x509.SubjectAlternativeName
        ).value.get_values_for_type(x509.DNSName)
    except (ValueError, TypeError, IndexError, InvalidSignature, x509.ExtensionNotFound):
        return True
    is_whole = (
        _fits(certificate, issued.key) and _fits(authority, issued.authority_key) and host in names
    )
    return not is_whole or _is_worn(certificate, at) or _is_worn(authority, at)


def _authorities(issued: IssuedCertificate | None) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(issued.bundle) if issued is not None else []
    except ValueError:
        return []


def _is_worn(certificate: x509.Certificate, at: datetime) -> bool:
    begins, ends = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    return not begins <= at < begins + (ends - begins) * _USED


def _fits(certificate: x509.Certificate, key: bytes) -> bool:
    try:
        return _key(key).public_key() == certificate.public_key()
    except (ValueError, TypeError):
        return False


def _key(pem: bytes) -> ec.EllipticCurvePrivateKey:
    key = serialization.load_pem_private_key(pem, password=None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise ValueError("the key is not an elliptic curve key")
    return key


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _builder(
    name: str,
    at: datetime,
    life: timedelta,
    key: ec.EllipticCurvePrivateKey,
    authority: x509.Certificate | None,
) -> x509.CertificateBuilder:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name[:64])])
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject if authority is None else authority.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(at - _CLOCK_SKEW)
        .not_valid_after(at + life)
    )


def _signed(
    builder: x509.CertificateBuilder, signer: ec.EllipticCurvePrivateKey, host: str | None
) -> x509.Certificate:
    """`host`: the owner; None = it is an authority's."""
    usage = x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=host is None,
        crl_sign=host is None,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
    builder = builder.add_extension(
        x509.BasicConstraints(ca=host is None, path_length=None), critical=True
    )
    builder = builder.add_extension(usage, critical=True)
    builder = builder.add_extension(
        x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False
    )
    if host is None:
        builder = builder.add_extension(
            x509.SubjectKeyIdentifier.from_public_key(signer.public_key()), critical=False
        )
    else:
        builder = builder.add_extension(
            x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False
        )
        builder = builder.add_extension(
            x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False
        )
    return builder.sign(signer, hashes.SHA256())
