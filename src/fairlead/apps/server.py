"""Listen addresses, bound sockets, and `serve`: one wrapper of uvicorn for every HTTP app.

The port is taken with `bind_socket` before anything else starts, so that a port in use gives one
sentence and no half-started process. `serve` is stopped by cancelling its task: signals belong to
`service.run`, never to uvicorn.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import ipaddress
import logging
import os
import socket
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from ssl import SSLContext
from typing import Any, Final

import uvicorn
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Receive, Scope, Send

from fairlead.apps.patient_protocol import PatientProtocol
from fairlead.apps.question_protocol import KEEP_ALIVE_SECONDS, Answerer, QuestionProtocol
from fairlead.errors import UserError
from fairlead.settings import READ_SECONDS

GRACE_SECONDS: Final = 2
"""`GRACE_SECONDS`: time for running requests to finish after a stop, even if a client never reads.
"""
DATE_SECONDS: Final = 1.0
"""The time between two renewals of the `Date` of answers."""
_FINISH_LOOK_SECONDS: Final = 0.01
_BACKLOG: Final = 1024
_FIRST_OF_SYSTEMD: Final = 3
"""The descriptor of the first socket that systemd passes (sd_listen_fds)."""
MESSAGE_BYTES_MAX: Final = 1 << 20
"""The size of a WebSocket's message, all its fragments together; kubectl sends 32 KiB at most."""
_log = logging.getLogger(__name__)


def parse_address(text: str, default_host: str = "127.0.0.1") -> tuple[str, int]:
    """Host and port of a listen address.

    `:9400` means every interface, a bare port the default host.

    >>> parse_address(":9400"), parse_address("9400")
    (('', 9400), ('127.0.0.1', 9400))
    >>> parse_address("localhost:0"), parse_address("[::1]:80")
    (('localhost', 0), ('::1', 80))
    """
    host, colon, port_text = text.rpartition(":")
    if not port_text.isascii() or not port_text.isdigit() or int(port_text) > 65535:
        raise UserError(
            f"`{text}` is not an address to listen on",
            "write `HOST:PORT`, for example `127.0.0.1:9400`, or `:9400`",
        )
    if not colon:
        return default_host, int(port_text)
    return host.removeprefix("[").removesuffix("]"), int(port_text)


@lru_cache(maxsize=1024)  # asked about the same few peers with every request
def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address.

    "" (every interface) is not; a name counts only if it is `localhost`.
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def require_loopback(host: str, is_allowed: bool, flag: str) -> None:
    """Refuse an address that other machines can reach, unless the user allowed it with `flag`."""
    if not is_allowed and not is_loopback(host):
        raise UserError(
            (
                f"`{host or '*'}` can be reached from other machines, and this server does not "
                "authenticate clients"
            ),
            f"listen on 127.0.0.1, or add `{flag}` if a proxy in front of it does",
        )


def bind_socket(host: str, port: int) -> socket.socket:
    """A TCP socket that is ready to listen; port 0 picks a free one (`getsockname`).

    Raises UserError if the address cannot be used.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.bind((host, port))
        sock.listen(_BACKLOG)
    except OSError as error:
        sock.close()
        raise UserError(
            f"cannot listen on `{host or '*'}:{port}`: {_reason(error)}", _bind_hint(error)
        ) from error
    sock.setblocking(False)
    return sock


def systemd_socket(env: Mapping[str, str]) -> socket.socket:
    """The listening socket that systemd passes (`LISTEN_FDS`).

    Raises UserError if there is none.
    """
    hint = (
        "start it by a `.socket` unit of systemd with one address, or leave "
        "`--web-systemd-socket` out"
    )
    if env.get("LISTEN_PID") != str(os.getpid()) or env.get("LISTEN_FDS", "0") == "0":
        raise UserError(
            "systemd hands over no socket: `LISTEN_PID` and `LISTEN_FDS` are not this process's",
            hint,
        )
    if env["LISTEN_FDS"] != "1":
        raise UserError(
            f"systemd hands over {env['LISTEN_FDS']} sockets, and one page has one", hint
        )
    try:
        sock = socket.socket(fileno=_FIRST_OF_SYSTEMD)
        is_listening = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
    except OSError as error:
        raise UserError(f"what systemd hands over is no socket: {_reason(error)}", hint) from error
    if not is_listening or sock.family not in (socket.AF_INET, socket.AF_INET6):
        raise UserError("what systemd hands over is no listening TCP socket", hint)
    sock.setblocking(False)
    return sock


def _reason(error: OSError) -> str:
    return (
        "the port is taken"
        if error.errno == errno.EADDRINUSE
        else (error.strerror or str(error)).lower()
    )


def _bind_hint(error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return "choose another port (0 picks a free one), or stop the process that listens there"
    if error.errno == errno.EACCES:
        return "choose a port of 1024 or above"
    return "give an address of this machine"


class _Server(uvicorn.Server):
    """uvicorn without signal handlers, with `read_seconds` and an event for its readiness."""

    def __init__(
        self,
        app: ASGIApp | Answerer,
        config: uvicorn.Config,
        read_seconds: float,
        write_seconds: float | None,
        ready: asyncio.Event | None,
    ) -> None:
        super().__init__(config)
        self._ending = asyncio.Event()
        self._write_seconds = write_seconds
        self._answerer = app if isinstance(app, Answerer) else None
        self._read_seconds = read_seconds
        self._ready = ready

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Replaces uvicorn's own, which limits neither request reading nor TLS handshakes.

        asyncio lets a handshake take a minute.
        """
        loop, tls = asyncio.get_running_loop(), self.config.ssl
        handshake_seconds = self._read_seconds if tls is not None else None
        self.servers = [
            await loop.create_server(
                self._connection,
                sock=sock,
                ssl=tls,
                backlog=_BACKLOG,
                ssl_handshake_timeout=handshake_seconds,
            )
            for sock in sockets or ()
        ]
        self.started = True
        if self._ready is not None:
            self._ready.set()

    def end(self) -> None:
        """Begin the end. uvicorn's own `should_exit` is read at the next tick only."""
        self.should_exit = True
        self._ending.set()

    async def main_loop(self) -> None:
        """Replaces uvicorn's own, which wakes ten times a second to see whether it should end.

        The tick with number 0 renews the `Date` of the answers.
        """
        while not await self.on_tick(0):
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._ending.wait(), DATE_SECONDS)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Replaces uvicorn's own, which waits in steps of 0.1 s, at least one of them."""
        for server in self.servers:
            server.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        try:
            await asyncio.wait_for(self._finished(), self.config.timeout_graceful_shutdown)
        except TimeoutError:
            _log.info("%d unfinished answers are cut", len(self.server_state.tasks))
            for task in self.server_state.tasks:
                task.cancel()

    async def _finished(self) -> None:
        # a connection that has just been accepted is not yet among them
        await asyncio.sleep(_FINISH_LOOK_SECONDS)
        while self.server_state.connections or self.server_state.tasks:  # noqa: ASYNC110 - no event
            await asyncio.sleep(_FINISH_LOOK_SECONDS)
        for server in self.servers:
            await server.wait_closed()

    def _connection(self) -> PatientProtocol | QuestionProtocol:
        if self._answerer is not None:
            return QuestionProtocol(self._answerer, self.server_state, self._read_seconds)
        return PatientProtocol(
            config=self.config,
            server_state=self.server_state,
            app_state=self.lifespan.state,
            read_seconds=self._read_seconds,
            write_seconds=self._write_seconds,
        )


class _QuietApp:
    """The app, without its error about a client that went away during its own request."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with contextlib.suppress(ClientDisconnect):
            await self._app(scope, receive, send)


async def serve(
    app: ASGIApp | Answerer,
    *,
    sock: socket.socket,
    ssl: SSLContext | None = None,
    ready: asyncio.Event | None = None,
    stopping: Callable[[], None] | None = None,
    read_seconds: float = READ_SECONDS,
    write_seconds: float | None = None,
    web_sockets: bool = False,
) -> None:
    """Serve the app until cancelled, then let running requests finish for `GRACE_SECONDS`.

    An app that is not ASGI answers whole requests (`question_protocol`). There is no lifespan: an
    app's loops run beside it (`service.ServedApp`). `sock`: from `bind_socket`, closed at the end.
    `stopping` is called as soon as the stop begins: an app with endless streams (watches) ends them
    there. A client that has not sent a whole request within `read_seconds` is disconnected; with an
    ASGI app so is one that has not read an answer within `write_seconds` (None = no limit).
    `web_sockets`: a request to open a WebSocket reaches the ASGI app in a scope of that type;
    without, as the GET request that it is.
    """
    asgi: Any = app if isinstance(app, Answerer) else _QuietApp(app)
    config = uvicorn.Config(
        asgi,
        ws="wsproto" if web_sockets else "none",
        ws_max_size=MESSAGE_BYTES_MAX,
        ws_per_message_deflate=False,
        loop="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=GRACE_SECONDS,
        backlog=_BACKLOG,
    )
    config.load()
    config.ssl = ssl
    server = _Server(app, config, read_seconds, write_seconds, ready)
    serving = asyncio.create_task(server.serve(sockets=[sock]))
    try:
        await asyncio.shield(serving)
    except asyncio.CancelledError:
        server.end()
        if stopping is not None:
            stopping()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(serving, GRACE_SECONDS + 1)
        raise
    finally:
        sock.close()
