"""Blocking HTTP connections with what `http.client` lacks: TLS names, proxies, two time-outs."""

from __future__ import annotations

import http.client
import socket
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from fairlead.edge.connection.credentials import basic
from fairlead.edge.connection.proxy import proxy_login
from fairlead.errors import UserError

if TYPE_CHECKING:
    import ssl

CONNECT_SECONDS = 10.0


class _Line(http.client.HTTPConnection):
    """A connection.

    `timeout` limits connecting; `read_seconds` limits each later wait for bytes (None: no limit).

    TLS is inside a proxy's tunnel, if there is one.
    """

    def __init__(
        self,
        host: str,
        port: int,
        context: ssl.SSLContext | None,
        server_name: str,
        seconds: tuple[float, float | None],
    ) -> None:
        connect_seconds, self._read_seconds = seconds
        super().__init__(host, port, timeout=connect_seconds)
        self._create_connection = _connect
        self._tls_context = context
        self._server_name = server_name

    def connect(self) -> None:
        super().connect()
        if self._tls_context is not None:
            self.sock = self._tls_context.wrap_socket(
                self.sock, server_hostname=_plain(self._server_name)
            )
        self.sock.settimeout(self._read_seconds)


def _connect(address: tuple[str, int], *timeout_and_source: Any) -> socket.socket:
    host, port = address
    return socket.create_connection((_plain(host), port), *timeout_and_source)  # type: ignore[arg-type]  # bytes are a host, too


def _plain(host: str) -> str | bytes:
    """An ordinary host name as bytes: for a str Python loads its tables of international names,
    which takes longer than a request.
    """
    return host.encode() if host.isascii() else host


def open_connection(
    server: str,
    *,
    context: ssl.SSLContext | None = None,
    server_name: str | None = None,
    proxy: str | None = None,
    read_seconds: float | None,
    connect_seconds: float = CONNECT_SECONDS,
) -> http.client.HTTPConnection:
    """A connection to a URL's server, not yet open: it opens with its first request."""
    parts = urlsplit(server)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    host = parts.hostname or ""
    if proxy is None:
        return _Line(host, port, context, server_name or host, (connect_seconds, read_seconds))
    address, login = proxy_login(proxy)
    through = urlsplit(address)
    if through.scheme != "http":
        raise UserError(
            f"proxy `{address}` speaks {through.scheme or 'nothing known'}",
            "the command line can only use proxies with http://",
        )
    line = _Line(
        through.hostname or "",
        through.port or 80,
        context,
        server_name or host,
        (connect_seconds, read_seconds),
    )
    if context is not None:
        line.set_tunnel(host, port, headers={"Proxy-Authorization": basic(*login)} if login else {})
    return line


def request_target(server: str, path: str, proxy: str | None) -> str:
    """The target in the request line: a proxy gets the whole address, but a server behind a tunnel
    (TLS) only the path.

    >>> request_target("https://a/k8s", "/api", "http://p"), request_target("http://a/k8s", "/api", "http://p")
    ('/k8s/api', 'http://a/k8s/api')
    """
    if proxy and server.startswith("http://"):
        return server + path
    return urlsplit(server).path.rstrip("/") + path
