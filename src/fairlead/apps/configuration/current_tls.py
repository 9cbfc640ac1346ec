"""TLS as a web configuration asks for it, and a context of which every new connection gets the newest.

A context cannot forget an authority it trusts, so a changed file makes a new one; a server keeps the one it
was started with. Here that one is a door that hands each connection to the context in force.
"""

from __future__ import annotations

import os
import ssl
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from fairlead.errors import UserError
from fairlead.wire.files.web_config import REQUIRE_VERIFIED, VERIFY_GIVEN, TlsServer

_VERSIONS: Final = {"TLS13": ssl.TLSVersion.TLSv1_3}
_VERIFY: Final = {VERIFY_GIVEN: ssl.CERT_OPTIONAL, REQUIRE_VERIFIED: ssl.CERT_REQUIRED}
_FORM: Final = "both in PEM, the key without password"


class CurrentTls(ssl.SSLContext):
    """What a server is started with; `current` is what its connections get."""

    current: ssl.SSLContext

    def __new__(cls, current: ssl.SSLContext) -> CurrentTls:
        door = super().__new__(cls, ssl.PROTOCOL_TLS_SERVER)
        door.current = current
        return door

    def wrap_bio(self, *args: Any, **named: Any) -> ssl.SSLObject:
        """Called by event loops for each connection."""
        return self.current.wrap_bio(*args, **named)


def tls_files(tls: TlsServer, folder: Path) -> tuple[Path, ...]:
    """The files that belong to it, to be followed."""
    return tuple(folder / name for name in (tls.cert_file, tls.key_file, tls.client_ca_file) if name)


def tls_context(tls: TlsServer, folder: Path) -> ssl.SSLContext:
    """Raises UserError for files that are no certificate, key, authority."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = _VERSIONS.get(tls.min_version, ssl.TLSVersion.TLSv1_2)
    context.maximum_version = _VERSIONS.get(tls.max_version, ssl.TLSVersion.TLSv1_2)
    if tls.ciphers:
        context.set_ciphers(tls.ciphers)
    if tls.curve:
        context.set_ecdh_curve(tls.curve)
    if not tls.prefer_server_cipher_suites:
        context.options &= ~ssl.OP_CIPHER_SERVER_PREFERENCE
    _load_pair(context, tls, folder)
    if tls.client_auth_type in _VERIFY:
        _trust(context, tls, folder)
        context.verify_mode = _VERIFY[tls.client_auth_type]
    if tls.client_allowed_sans:
        context.sslobject_class = _admitting(frozenset(tls.client_allowed_sans))
    return context


def _load_pair(context: ssl.SSLContext, tls: TlsServer, folder: Path) -> None:
    certificate = _Inline(tls.cert) if tls.cert else None
    key = _Inline(tls.key) if tls.key else None
    told = (f"`{folder / tls.cert_file}`" if not certificate else "`cert`", f"`{folder / tls.key_file}`" if not key else "`key`")
    try:
        context.load_cert_chain(
            certificate.path if certificate else folder / tls.cert_file, key.path if key else folder / tls.key_file, password=""
        )
    except (OSError, ssl.SSLError, ValueError) as error:
        raise UserError(f"{told[0]} and {told[1]} are no certificate and its key: {error}", _FORM) from error
    finally:
        for each in filter(None, (certificate, key)):
            each.close()


def _trust(context: ssl.SSLContext, tls: TlsServer, folder: Path) -> None:
    try:
        context.load_verify_locations(folder / tls.client_ca_file if tls.client_ca_file else None, cadata=tls.client_ca or None)
    except (OSError, ssl.SSLError, ValueError) as error:
        what = f"`{folder / tls.client_ca_file}`" if tls.client_ca_file else "`client_ca`"
        raise UserError(f"{what} is no certificate authority: {error}", "give PEM") from error


class _Inline:
    """Text that OpenSSL reads as a file, without one on a disk."""

    def __init__(self, text: str) -> None:
        self._descriptor = os.memfd_create("inline", os.MFD_CLOEXEC)
        os.write(self._descriptor, text.encode())
        self.path = f"/proc/self/fd/{self._descriptor}"

    def close(self) -> None:
        with suppress(OSError):
            os.close(self._descriptor)


def _admitting(allowed: frozenset[str]) -> type[ssl.SSLObject]:
    """A TLS connection that ends where the client's certificate has none of these names."""

    class Admitting(ssl.SSLObject):
        def do_handshake(self) -> None:
            super().do_handshake()
            peer: Any = self.getpeercert() or {}
            if not any(name in allowed for _, name in peer.get("subjectAltName", ())):
                raise ssl.SSLCertVerificationError("the client's certificate has none of `client_allowed_sans`")

    return Admitting
