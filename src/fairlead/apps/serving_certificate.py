"""The certificate of a server: the newest content of its two files, without a restart.

A new pair is tested separately first: an incomplete renewal, a certificate that does not fit its
key, must not spoil the one that is in use.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from pathlib import Path
from typing import Final

from fairlead.errors import UserError

RELOAD_SECONDS: Final = 30.0
_log = logging.getLogger(__name__)


class ServingCertificate:
    """The certificate of a server, read again when its files change (as a renewed Secret's do).

    If `client_ca` is the file of an authority, a client may show a certificate; a certificate of
    another authority is refused.
    """

    def __init__(self, certificate: Path, key: Path, client_ca: Path | None = None) -> None:
        self._files = (certificate, key)
        self._seen = self._state()
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        self._load()
        if client_ca is not None:
            trust_clients(self.context, client_ca)

    async def follow(self) -> None:
        """Check every `RELOAD_SECONDS`; a pair that does not fit
        is logged, and the old one stays.
        """
        while True:
            await asyncio.sleep(RELOAD_SECONDS)
            self.reload()

    def reload(self) -> None:
        try:
            now = self._state()
            if now != self._seen:
                self._load()
                self._seen = now
                _log.info("certificate read again")
        except UserError as error:
            _log.warning("the old certificate goes on: %s", error.log_line)

    def _load(self) -> None:
        certificate, key = self._files
        try:
            # a bad pair must not spoil the one in use
            for context in (ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), self.context):
                context.load_cert_chain(certificate, key, password="")  # never ask a terminal
        except (OSError, ssl.SSLError, ValueError) as error:
            raise UserError(
                f"`{certificate}` and `{key}` are no certificate and its key: {error}",
                "both in PEM, the key without password",
            ) from error

    def _state(self) -> tuple[tuple[int, int], ...]:
        try:
            return tuple(
                (found.st_mtime_ns, found.st_ino) for found in (file.stat() for file in self._files)
            )
        except OSError as error:
            raise UserError(
                f"cannot read `{error.filename}`: {(error.strerror or str(error)).lower()}",
                "name a PEM file",
            ) from error


def trust_clients(context: ssl.SSLContext, authority: Path) -> None:
    """Ask each client for a certificate.

    A certificate that a client shows must be of this authority. Raises UserError.
    """
    try:
        context.load_verify_locations(authority)
    except (OSError, ssl.SSLError) as error:
        raise UserError(
            f"`{authority}` is no certificate authority: {error}", "name a PEM file"
        ) from error
    context.verify_mode = ssl.CERT_OPTIONAL
