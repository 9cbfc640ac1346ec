"""Keep-alive connections to one server for short writes, without a client library's overhead.

A request is sent once. After its first byte it is unknown whether the server has received it, so it
is never repeated; a connection is used again only when its answer was read completely.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable
from http.client import IncompleteRead, RemoteDisconnected
from ssl import SSLContext
from typing import Final
from urllib.parse import urlsplit

import httptools
from msgspec import Struct

CONNECT_SECONDS: Final = 3.0
"""Time limit for connecting; a Lease does not last longer, and no write is sent without one."""
CONNECTIONS_MAX: Final = 32
IDLE_SECONDS: Final = 30.0
"""How long an idle connection is kept.

kube-apiserver closes one after 90 s, proxies may be earlier.
"""
NO_ANSWER: Final = (OSError, IncompleteRead, httptools.HttpParserError)
"""Exceptions of `exchange` when there was no complete answer."""


class Reply(Struct):
    status: int
    body: bytes
    retry_after: str | None = None


class KeptConnections:
    """`server`: a URL with a scheme; its path precedes the paths of requests."""

    def __init__(self, server: str, tls: SSLContext | None, server_hostname: str | None) -> None:
        parts = urlsplit(server)
        self._path = parts.path
        self._host = parts.netloc.rpartition("@")[2]
        self._address = parts.hostname or "", parts.port or (443 if tls else 80)
        self._tls = tls
        self._server_hostname = (server_hostname or parts.hostname) if tls else None
        self._free: deque[_Connection] = deque()
        self._turns = asyncio.Semaphore(CONNECTIONS_MAX)
        self._is_closed = False

    def close(self) -> None:
        """Closes idle connections; those in use end when they are returned."""
        self._is_closed = True
        while self._free:
            self._free.pop().end()

    def render(
        self, method: str, path: str, headers: Iterable[tuple[str, str]], body: bytes | None
    ) -> bytes:
        """The bytes of a request. Raises ValueError for a header with a line break."""
        lines = [
            f"{method} {self._path}{path} HTTP/1.1",
            f"Host: {self._host}",
            f"Content-Length: {len(body or b'')}",
        ]
        lines += [f"{name}: {value}" for name, value in headers]
        if any("\r" in line or "\n" in line for line in lines):
            raise ValueError("a line break in a header")
        return "\r\n".join((*lines, "\r\n")).encode("latin-1") + (body or b"")

    async def exchange(self, make: Callable[[], tuple[bytes, float]]) -> Reply:
        """The answer to the request from `make`: its bytes, and the seconds that it may take.

        `make` is called once the connection is open, right before writing; its exceptions pass
        through, and nothing was sent. Raises NO_ANSWER.
        """
        async with self._turns:
            connection = self._taken() or await self._connect()
            try:
                return await connection.ask(*make())
            finally:
                if connection.is_usable() and not self._is_closed:
                    self._free.append(connection)
                else:
                    connection.end()

    def _taken(self) -> _Connection | None:
        """The idle connection that was used last; those idle for too long are closed."""
        while self._free and not self._free[0].is_usable():
            self._free.popleft().end()
        while self._free:
            if (last := self._free.pop()).is_usable():
                return last
            last.end()
        return None

    async def _connect(self) -> _Connection:
        async with asyncio.timeout(CONNECT_SECONDS):
            _, connection = await asyncio.get_running_loop().create_connection(
                _Connection, *self._address, ssl=self._tls, server_hostname=self._server_hostname
            )
        return connection


class _Connection(asyncio.Protocol):
    """A connection with one request at a time."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpResponseParser(self)
        self._answer: asyncio.Future[Reply] | None = None
        self._is_whole = True
        self._used_at = time.monotonic()

    def is_usable(self) -> bool:
        return (
            self._is_whole
            and not self._transport.is_closing()
            and time.monotonic() - self._used_at < IDLE_SECONDS
        )

    def end(self) -> None:
        self._transport.abort()

    async def ask(self, request: bytes, seconds: float) -> Reply:
        self._is_whole = False
        self._has_begun = False
        self._answer = self._loop.create_future()
        deadline = self._loop.call_later(seconds, self._fail, TimeoutError())
        try:
            self._transport.write(request)
            return await self._answer
        finally:
            deadline.cancel()
            self._answer = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        if (
            exc is None
            and self._answer is not None
            and self._has_begun
            and self._ends_with_connection
        ):
            self._complete()
        self._fail(
            exc
            or (
                IncompleteRead(b"")
                if self._answer and self._has_begun
                else RemoteDisconnected("closed without an answer")
            )
        )

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._fail(error)
        except httptools.HttpParserUpgrade:
            self._fail(RemoteDisconnected("the server changes to another protocol"))

    def on_message_begin(self) -> None:
        self._has_begun = True
        # also for an answer without a request, which makes the connection unusable
        self._is_whole = False
        self._pieces: list[bytes] = []
        self._retry_after: str | None = None
        self._has_length = self._ends_with_connection = False

    def on_header(self, name: bytes, value: bytes) -> None:
        name = name.lower()
        if name == b"retry-after":
            self._retry_after = value.decode("latin-1")
        elif name in (b"content-length", b"transfer-encoding"):
            self._has_length = True

    def on_headers_complete(self) -> None:
        self._ends_with_connection = not self._has_length and self._parser.get_status_code() >= 200

    def on_body(self, body: bytes) -> None:
        self._pieces.append(body)

    def on_message_complete(self) -> None:
        self._complete()

    def _complete(self) -> None:
        status = self._parser.get_status_code()
        if status < 200 or self._answer is None or self._answer.done():  # 1xx precedes the answer
            return
        self._is_whole = self._parser.should_keep_alive()
        self._used_at = time.monotonic()
        self._answer.set_result(Reply(status, b"".join(self._pieces), self._retry_after))

    def _fail(self, error: Exception) -> None:
        self._is_whole = False
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(error)
