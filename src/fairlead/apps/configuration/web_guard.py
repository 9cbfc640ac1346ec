"""TLS and passwords of a server's pages: a web configuration file, read again when it changes.

A change of a certificate that it names counts, too.

At the start a broken file ends the server, so that a page that should be guarded is never open.
Later the last good reading stays in force. A reading that removes TLS or all passwords, or demands
less of clients' certificates, is not good: such a change needs a restart of the server.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from pathlib import Path
from ssl import SSLContext
from typing import Final

from msgspec import Struct
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fairlead.apps.configuration.current_tls import CurrentTls, as_name, tls_context, tls_files
from fairlead.apps.configuration.passwords import Passwords, TooManyChecks
from fairlead.apps.configuration.regular_file import read_regular_file
from fairlead.errors import UserError
from fairlead.model.refusal import Refusal
from fairlead.model.repeat_filter import RepeatFilter
from fairlead.wire.files.web_config import (
    AUTH_TYPES,
    REQUEST,
    TlsServer,
    WebConfig,
    parse_web_config,
)

LOOK_SECONDS: Final = 1.0
BYTES_MAX: Final = 1 << 20
OPEN_PATHS: Final = frozenset({"/health", "/healthz", "/readyz"})
"""Paths without password: a kubelet's probes have none, and learn only that the process lives."""
_HINT: Final = (
    "write it as Prometheus' exporters have it: "
    "https://prometheus.io/docs/prometheus/latest/configuration/https/"
)
_log = logging.getLogger(__name__)
Stamps = tuple[tuple[int, ...], ...]


class _Reading(Struct, frozen=True):
    """One good reading of the files."""

    config: WebConfig
    files: tuple[Path, ...]
    stamps: Stamps
    context: SSLContext | None
    passwords: Passwords | None


class WebGuard:
    """Raises UserError if the file cannot guard a page; never later."""

    def __init__(
        self,
        path: Path,
        look_seconds: float = LOOK_SECONDS,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._path = path
        self._look_seconds = look_seconds
        self._monotonic = monotonic
        self._reading = self._read()
        self._seen = self._reading.stamps
        self._trouble = RepeatFilter()
        self._is_asked = False
        self._left, self._left_at = float(self._reading.config.burst), monotonic()
        self.tls = None if self._reading.context is None else CurrentTls(self._reading.context)

    def guarded(self, app: ASGIApp) -> ASGIApp:
        """The app, guarded."""

        async def locked(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http":
                await app(scope, receive, send)
                return
            refusal = await self._refusal(scope["path"], Headers(scope=scope))
            await (refusal or app)(scope, receive, self._with_headers(send))

        return locked

    async def follow(self) -> None:
        """Check the files until cancelled."""
        while True:
            await asyncio.sleep(self._look_seconds)
            self._adopt(await asyncio.to_thread(self._changed))

    def reload(self) -> None:
        """Read the files again at the next check, even if they seem unchanged."""
        self._is_asked = True

    def _changed(self) -> _Reading | None:
        """A new reading, None if there is none. Runs in a thread."""
        is_asked, self._is_asked = self._is_asked, False
        stamps = _stamps(self._reading.files)
        if stamps == self._seen and not is_asked and not self._trouble.what:
            return None
        self._seen = stamps
        try:
            return self._kept_shut(self._read())
        except UserError as error:
            if self._trouble.is_news(error.log_line):
                _log.warning("the web configuration stays as it was: %s", error.log_line)
            return None

    def _kept_shut(self, reading: _Reading) -> _Reading:
        """Raises UserError for a reading that removes protection,
        or adds TLS where there was none.
        """
        if (reading.context is None) != (self._reading.context is None):
            raise UserError(
                (
                    f"`{self._path}` "
                    f"{'has no TLS any more' if reading.context is None else 'has TLS now'}"
                ),
                "start the server anew",
            )
        if reading.passwords is None and self._reading.passwords is not None:
            raise UserError(f"`{self._path}` has no users any more", "start the server anew")
        old, new = self._reading.config.tls, reading.config.tls
        if old is not None and new is not None and (why := _lets_in_more(old, new)):
            raise UserError(f"`{self._path}` {why}", "start the server anew")
        return reading

    def _adopt(self, reading: _Reading | None) -> None:
        if reading is None:
            return
        if reading.passwords is not None and reading.config.users == self._reading.config.users:
            reading = _Reading(
                reading.config,
                reading.files,
                reading.stamps,
                reading.context,
                self._reading.passwords,
            )
        self._reading, self._seen = reading, reading.stamps
        self._trouble.is_news("")
        if self.tls is not None and reading.context is not None:
            self.tls.current = reading.context
        _log.info("web configuration read again from `%s`", self._path)

    def _read(self) -> _Reading:
        before = _stamps((self._path,))
        config = parse_web_config(
            read_regular_file(
                self._path,
                BYTES_MAX,
                "web configuration",
                "name a file with `--web-config-file`",
            )
        )
        if isinstance(config, Refusal):
            raise UserError(f"web configuration `{self._path}`: {config.reason}", _HINT)
        files = tls_files(config.tls, self._path.parent) if config.tls else ()
        stamps = (*before, *_stamps(files))
        context = tls_context(config.tls, self._path.parent) if config.tls else None
        passwords = Passwords(config.users) if config.users else None
        return _Reading(config, (self._path, *files), stamps, context, passwords)

    async def _refusal(self, path: str, headers: Headers) -> PlainTextResponse | None:
        """The answer in place of the app's, None = let it through.

        `path`: the path that the app sees.
        """
        if path in OPEN_PATHS:
            return None
        if not self._has_turn():
            return PlainTextResponse(
                "too many requests: `rate_limit` of the web configuration\n",
                429,
                {"retry-after": "1"},
            )
        if (passwords := self._reading.passwords) is None:
            return None
        given = headers.getlist("authorization")
        try:
            if len(given) == 1 and await passwords.admit(given[0]):
                return None
        except TooManyChecks:
            return PlainTextResponse(
                "too many passwords are being checked\n", 503, {"retry-after": "1"}
            )
        return PlainTextResponse(
            "a user name and password are required\n",
            401,
            {"www-authenticate": ('Basic realm="metrics"')},
        )

    def _has_turn(self) -> bool:
        """Rate limit: a bucket of `burst` requests, to which one is added per interval."""
        config = self._reading.config
        if not config.interval_seconds:
            return True
        now = self._monotonic()
        self._left = min(
            float(config.burst), self._left + (now - self._left_at) / config.interval_seconds
        )
        self._left_at = now
        if self._left < 1:
            return False
        self._left -= 1
        return True

    def _with_headers(self, send: Send) -> Send:
        headers = [
            (name.lower().encode(), text.encode())
            for name, text in self._reading.config.headers.items()
        ]
        if not headers:
            return send

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], *headers]}
            await send(message)

        return sending


def _lets_in_more(old: TlsServer, new: TlsServer) -> str:
    """Why clients that `old` rejects are accepted by `new`; "" if there are none."""
    types = AUTH_TYPES.index
    if (
        types(new.client_auth_type) < types(old.client_auth_type)
        and old.client_auth_type != REQUEST
    ):
        return (
            f"asks less of clients: `client_auth_type` was `{old.client_auth_type}` and is "
            f"`{new.client_auth_type}`"
        )
    before, now = ({as_name(each) for each in tls.client_allowed_sans} for tls in (old, new))
    if before and not now:
        return "has no `client_allowed_sans` any more"
    if before and (more := sorted(now - before)):
        return f"lets in more clients: `{more[0]}` was not in `client_allowed_sans`"
    return ""


def _stamps(files: tuple[Path, ...]) -> Stamps:
    """When each file was last written; empty for a file that cannot be seen."""
    found: list[tuple[int, ...]] = []
    for file in files:
        try:
            seen = file.stat()
            found.append((seen.st_mtime_ns, seen.st_ino, seen.st_size))
        except (OSError, ValueError):
            found.append(())
    return tuple(found)
