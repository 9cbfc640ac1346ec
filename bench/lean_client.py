"""The leanest client that speaks HTTP/1.1 over TLS, so that a benchmark of servers measures servers.

One connection per `LeanClient`.
"""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path
from typing import Any

import httptools


class LeanClient(asyncio.Protocol):
    """`request` for one answer at a time; `watch` for a stream whose lines are counted in `lines`."""

    def __init__(self, host: str, authorization: str) -> None:
        self._head = f"Host: {host}\r\nAccept: application/json\r\n" + (f"Authorization: {authorization}\r\n" if authorization else "")
        self._answer: asyncio.Future[None] | None = None
        self.lines = 0
        self.news = asyncio.Event()

    @classmethod
    async def open(cls, kubeconfig: Path) -> LeanClient:
        """A connection as the kubeconfig says, with its token or client certificate."""
        server, authorization, context = access(kubeconfig)
        host, _, port = server.removeprefix("https://").partition(":")
        loop = asyncio.get_running_loop()
        _, client = await loop.create_connection(lambda: cls(host, authorization), host, int(port), ssl=context)
        return client

    async def request(self, method: str, path: str, body: bytes = b"", content_type: str = "application/json") -> bytes:
        """The answer's body; AssertionError for anything but a 2xx."""
        self._send(method, path, body, content_type)
        await self._answer  # type: ignore[misc]
        status = self._parser.get_status_code()
        whole = b"".join(self._parts)
        assert 200 <= status < 300, (status, whole[:500])
        return whole

    def watch(self, path: str) -> None:
        self._send("GET", path, b"", "")

    def close(self) -> None:
        self._transport.close()

    def _send(self, method: str, path: str, body: bytes, content_type: str) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._parts: list[bytes] = []
        self._answer = asyncio.get_running_loop().create_future()
        told = f"Content-Type: {content_type}\r\nContent-Length: {len(body)}\r\n" if body else ""
        self._transport.write(f"{method} {path} HTTP/1.1\r\n{self._head}{told}\r\n".encode() + body)

    # asyncio.Protocol

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def connection_lost(self, reason: Exception | None) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(reason or ConnectionError("the server closed the connection"))
            self._answer.exception()  # a watch that is closed on purpose leaves nobody to ask

    # httptools

    def on_body(self, part: bytes) -> None:
        self._parts.append(part)
        self.lines += part.count(b"\n")
        self.news.set()

    def on_message_complete(self) -> None:
        assert self._answer is not None
        if not self._answer.done():
            self._answer.set_result(None)


def access(kubeconfig: Path) -> tuple[str, str, ssl.SSLContext]:
    """Server, `Authorization` header and TLS context of the current user."""
    from fairlead.edge.connection.connection import make_ssl_context
    from fairlead.edge.connection.kubeconfig import find_connection

    connection = find_connection(str(kubeconfig))
    assert connection is not None
    issued = connection.credentials.current()
    return connection.server, issued.authorization or "", make_ssl_context(connection, issued.certificate)
