"""A user's credentials: issued by a source, kept until they expire, dropped after a 401.

All sources have one interface: a fixed token never expires, a token file is read again every
minute, a plugin returns the expiry of its answer.
"""

from __future__ import annotations

import base64
import threading
import time
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from fairlead.errors import UserError

# the kubelet replaces a token well before its end; client-go's value (1 min less 10 s)
TOKEN_FILE_SECONDS = 50.0


class ClientCertificate(Struct, frozen=True):
    certificate_pem: bytes
    key_pem: bytes


class IssuedCredentials(Struct, frozen=True):
    """`authorization`: the whole header value.

    `expires_at`: epoch seconds; None = valid until the server refuses it.
    """

    authorization: str | None = None
    certificate: ClientCertificate | None = None
    expires_at: float | None = None


class Credentials:
    """Issued credentials, renewed when they expire.

    Safe to use from several threads; `current` may block on a file or a plugin.
    """

    def __init__(
        self,
        issue: Callable[[], IssuedCredentials],
        *,
        is_renewable: bool,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.is_renewable = is_renewable
        self._issue = issue
        self._now = now
        self._lock = threading.Lock()
        self._issued: IssuedCredentials | None = None

    @property
    def is_fresh(self) -> bool:
        """Whether `current` would return without blocking.

        An event loop checks this first and calls `current` in a thread when it is False.
        """
        issued = self._issued
        return issued is not None and (issued.expires_at is None or self._now() < issued.expires_at)

    def current(self) -> IssuedCredentials:
        with self._lock:
            if self._issued is None or not self.is_fresh:
                self._issued = self._issue()
            return self._issued

    def renew(self, refused: IssuedCredentials) -> bool:
        """Notes that the server refused these credentials.

        True when the source may have better ones; then the next `current` asks the source.
        """
        with self._lock:
            if not self.is_renewable:
                return False
            if self._issued is refused:  # else another thread has renewed already
                self._issued = None
            return True


def bearer(token: str) -> str:
    """The header for a token.

    Raises UserError for a token that cannot be in a header, so that a malformed file is never sent.
    """
    token = token.strip()
    if not token.isprintable() or not token.isascii():
        raise UserError(
            "the token contains characters that cannot be in a header",
            "check for line breaks in the middle of the token",
        )
    return f"Bearer {token}"


def basic(user: str, password: str) -> str:
    """
    >>> basic("ann", "secret")
    'Basic YW5uOnNlY3JldA=='
    """
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def token_file_source(
    path: str, *, fallback_token: str | None = None, now: Callable[[], float] = time.time
) -> Callable[[], IssuedCredentials]:
    """A source that issues the token in a file, which another program keeps current.

    When the file cannot be read again, the last good token stays in use.
    """
    last = bearer(fallback_token) if fallback_token else None

    def issue() -> IssuedCredentials:
        nonlocal last
        try:
            last = bearer(_read_token(path))
        except UserError:
            if last is None:
                raise
        return IssuedCredentials(authorization=last, expires_at=now() + TOKEN_FILE_SECONDS)

    return issue


def _read_token(path: str) -> str:
    try:
        token = Path(path).read_text(encoding="utf-8").strip()
    except OSError as error:
        raise UserError(
            f"token file `{path}` cannot be read: {error.strerror}",
            "check the path of the token file",
        ) from error
    except UnicodeDecodeError as error:
        raise UserError(
            f"token file `{path}` is not text", "it must contain one bearer token"
        ) from error
    if not token:
        raise UserError(f"token file `{path}` is empty", "check the program that writes it")
    return token
