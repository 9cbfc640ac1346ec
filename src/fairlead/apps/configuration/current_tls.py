"""TLS as in a web configuration, and a context that gives every new connection the newest settings.

A context cannot forget an authority that it trusts, so a changed file makes a new context; but a
server keeps the one that it was started with. `CurrentTls` is what the server is started with: it
passes each connection to the newest context.
"""

from __future__ import annotations

import ipaddress
import os
import ssl
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from fairlead.apps.configuration.regular_file import read_regular_file
from fairlead.errors import UserError
from fairlead.wire.files.web_config import REQUIRE_VERIFIED, VERIFY_GIVEN, TlsServer

_VERSIONS: Final = {"TLS13": ssl.TLSVersion.TLSv1_3}
_VERIFY: Final = {VERIFY_GIVEN: ssl.CERT_OPTIONAL, REQUIRE_VERIFIED: ssl.CERT_REQUIRED}
PEM_BYTES_MAX: Final = 4 << 20
_FORM: Final = "both in PEM, the key without password"


class CurrentTls(ssl.SSLContext):
    """The context that a server is started with; its connections get `current`."""

    current: ssl.SSLContext

    def __new__(cls, current: ssl.SSLContext) -> CurrentTls:
        door = super().__new__(cls, ssl.PROTOCOL_TLS_SERVER)
        door.current = current
        return door

    def wrap_bio(self, *args: Any, **named: Any) -> ssl.SSLObject:
        """Called by event loops for each connection."""
        return self.current.wrap_bio(*args, **named)


def tls_files(tls: TlsServer, folder: Path) -> tuple[Path, ...]:
    """The files of the TLS settings, which must be followed."""
    return tuple(
        folder / name for name in (tls.cert_file, tls.key_file, tls.client_ca_file) if name
    )


def tls_context(tls: TlsServer, folder: Path) -> ssl.SSLContext:
    """Raises UserError for files that are no certificate, key or authority."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    least = "TLS13" if tls.speaks_only_13 else tls.min_version
    context.minimum_version = _VERSIONS.get(least, ssl.TLSVersion.TLSv1_2)
    context.maximum_version = _VERSIONS.get(tls.max_version, ssl.TLSVersion.TLSv1_2)
    try:
        if tls.ciphers:
            context.set_ciphers(tls.ciphers)
        if tls.curve:
            context.set_ecdh_curve(tls.curve)
    except (ssl.SSLError, ValueError) as error:
        what = (
            f"`cipher_suites` {', '.join(tls.cipher_suites)} and `curve_preferences` "
            f"{tls.curve or 'of OpenSSL'}"
        )
        raise UserError(
            f"{what} cannot be had here: {error}", "leave them out: the usual ones are safe"
        ) from error
    if not tls.prefer_server_cipher_suites:
        context.options &= ~ssl.OP_CIPHER_SERVER_PREFERENCE
    _load_pair(context, tls, folder)
    if tls.client_auth_type in _VERIFY:
        _trust(context, tls, folder)
        context.verify_mode = _VERIFY[tls.client_auth_type]
    if tls.client_allowed_sans:
        context.sslobject_class = _admitting(tls.client_allowed_sans)
    return context


def _load_pair(context: ssl.SSLContext, tls: TlsServer, folder: Path) -> None:
    certificate, key = (
        _Pem(folder, "cert", tls.cert_file, tls.cert),
        _Pem(folder, "key", tls.key_file, tls.key),
    )
    with certificate.as_file() as certificate_path, key.as_file() as key_path:
        try:
            context.load_cert_chain(certificate_path, key_path, password="")
        except (OSError, ValueError) as error:
            raise UserError(
                f"{certificate.name} and {key.name} are no certificate and its key: {error}",
                _FORM,
            ) from error


def _trust(context: ssl.SSLContext, tls: TlsServer, folder: Path) -> None:
    authority = _Pem(folder, "client_ca", tls.client_ca_file, tls.client_ca)
    with authority.as_file() as path:
        try:
            context.load_verify_locations(path)
        except (OSError, ValueError) as error:
            raise UserError(
                f"{authority.name} is no certificate authority: {error}", "give PEM"
            ) from error


class _Pem:
    """A PEM text from a file or from the configuration, read as a whole before OpenSSL sees it:
    OpenSSL would wait for a pipe without end.
    """

    def __init__(self, folder: Path, what: str, file: str, inline: str) -> None:
        self.name = f"`{folder / file}`" if file else f"`{what}`"
        self._pem = (
            read_regular_file(folder / file, PEM_BYTES_MAX, f"`{what}_file`", _FORM)
            if file
            else inline.encode(errors="replace")
        )

    @contextmanager
    def as_file(self) -> Iterator[str]:
        """A path for OpenSSL, which only reads files. The file is only in memory."""
        descriptor = os.memfd_create("pem", os.MFD_CLOEXEC)
        try:
            os.write(descriptor, self._pem)
            yield f"/proc/self/fd/{descriptor}"
        finally:
            os.close(descriptor)


def _admitting(allowed: Iterable[str]) -> type[ssl.SSLObject]:
    """A TLS connection that ends if the client's certificate has none of these names."""
    names = {as_name(each) for each in allowed}

    class Admitting(ssl.SSLObject):
        def do_handshake(self) -> None:
            super().do_handshake()
            peer: Any = self.getpeercert() or {}
            if not any(as_name(name) in names for _, name in peer.get("subjectAltName", ())):
                raise ssl.SSLCertVerificationError(
                    "the client's certificate has none of `client_allowed_sans`"
                )

    return Admitting


def as_name(text: str) -> str:
    """A name or an address in a comparable form: OpenSSL has its own spelling of IPv6 addresses.

    >>> as_name("2001:DB8:0:0:0:0:0:1"), as_name("2001:db8::1"), as_name("Prom.example")
    ('2001:db8::1', '2001:db8::1', 'Prom.example')
    """
    try:
        return str(ipaddress.ip_address(text.strip()))
    except ValueError:
        return text
