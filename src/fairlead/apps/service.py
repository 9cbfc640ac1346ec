"""What all servers share: `ServedApp`, its probes, and `run`, which serves several as one process.

The first loop that fails ends the process with its error. However the end begins, every other loop
is then cancelled once and waited for; a signal in the meantime changes nothing. The socket of a
`ServedApp` is bound before anything else starts.
"""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from ssl import SSLContext
from typing import Any, Final

from msgspec import Struct, field
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fairlead import __version__
from fairlead.apps.question_protocol import Answerer
from fairlead.apps.server import serve
from fairlead.apps.serving_certificate import ServingCertificate
from fairlead.settings import READ_SECONDS

Loop = Coroutine[Any, Any, None]
Page = Callable[[Request], Awaitable[Response]]
_LOOK_SECONDS: Final = 0.05


def _nothing() -> str:
    return ""


class Probes(Struct, frozen=True):
    """Answers for probes. Each function returns what is wrong, "" if nothing is.

    `trouble`: why this process should be restarted. `unready`: why it should not get requests yet.
    """

    trouble: Callable[[], str] = _nothing
    unready: Callable[[], str] = _nothing

    def pages(self) -> dict[str, Page]:
        """`/healthz` and `/readyz`: 200 `ok`, or 503 and the reason."""
        return {"/healthz": _probe(self.trouble), "/readyz": _probe(self.unready)}


def _probe(why: Callable[[], str]) -> Page:
    async def answer(request: Request) -> Response:
        reason = why()
        return PlainTextResponse(f"{reason}\n", 503) if reason else PlainTextResponse("ok\n")

    return answer


def pages_app(
    title: str, probes: Probes, metrics: Page, more: Mapping[str, Page] | None = None
) -> Starlette:
    """The app of a read-only server: `/metrics`, probes, their index at `/`, and `more` pages."""

    async def index(request: Request) -> Response:
        return PlainTextResponse(f"Fairlead {title} {__version__}\n/metrics\n/healthz\n/readyz\n")

    pages = {"/metrics": metrics, **probes.pages(), "/": index, **(more or {})}
    return Starlette(routes=[Route(path, page) for path, page in pages.items()])


class ServedApp(Struct, frozen=True, kw_only=True):
    """An app on a bound socket, and the loops that feed it.

    `tls`: a `ServingCertificate` is read again when its files change, and on SIGHUP. `opens`: no
    request is answered before it is set. `stopping` is called as soon as the end begins: endless
    streams end there. `reload` is called on SIGHUP. `read_seconds` and `write_seconds` as for
    `server.serve`. `accepting` is set once connections are accepted. `linger_seconds`: after a
    signal requests are answered for this time (not with an `Answerer`), and each answer closes its
    connection: a client that keeps connections then sends no request into one that is being closed.
    `web_sockets` as for `server.serve`.
    """

    app: ASGIApp | Answerer
    sock: socket.socket
    loops: tuple[Callable[[], Loop], ...] = ()
    probes: Probes = Probes()
    tls: ServingCertificate | SSLContext | None = None
    opens: asyncio.Event | None = None
    stopping: Callable[[], None] | None = None
    reload: Callable[[], None] | None = None
    read_seconds: float = READ_SECONDS
    write_seconds: float | None = None
    web_sockets: bool = False
    linger_seconds: float = 0.0
    accepting: asyncio.Event = field(default_factory=asyncio.Event)
    leaving: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self) -> None:
        """Serve until cancelled, or until one of its loops fails."""
        renewal = (self.tls.follow,) if isinstance(self.tls, ServingCertificate) else ()
        await together(self._serve(), *(loop() for loop in (*self.loops, *renewal)))

    async def _serve(self) -> None:
        if self.opens is not None:
            await self.opens.wait()
        ssl = self.tls.context if isinstance(self.tls, ServingCertificate) else self.tls
        app = self.app
        if self.linger_seconds and not isinstance(app, Answerer):
            app = _Farewell(app, self.leaving)
        await serve(
            app,
            sock=self.sock,
            ssl=ssl,
            ready=self.accepting,
            stopping=self.stopping,
            read_seconds=self.read_seconds,
            write_seconds=self.write_seconds,
            web_sockets=self.web_sockets,
        )

    def hang_up(self) -> None:
        """SIGHUP: read again what was read at the start."""
        if isinstance(self.tls, ServingCertificate):
            self.tls.reload()
        if self.reload is not None:
            self.reload()


class _Farewell:
    """The app; once `leaving` is set each answer closes its connection."""

    def __init__(self, app: ASGIApp, leaving: asyncio.Event) -> None:
        self._app = app
        self._leaving = leaving

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def closing(message: Message) -> None:
            if message["type"] == "http.response.start" and self._leaving.is_set():
                headers = [*message.get("headers", ()), (b"connection", b"close")]
                message = {**message, "headers": headers}
            await send(message)

        await self._app(scope, receive, closing)


async def together(*loops: Loop) -> None:
    """Run all until the first failure. It is raised after the others are cancelled and have ended.

    A loop may return.
    """
    tasks = [asyncio.ensure_future(loop) for loop in loops]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def run(
    *services: ServedApp,
    loops: Iterable[Loop] = (),
    on_ready: Callable[[], None],
    ends_on_hangup: bool = False,
) -> None:
    """Serve all, with `loops` beside them, until SIGTERM, SIGINT or the first failure (raised).

    `on_ready` is called once: when all accept connections and none is unready. SIGHUP makes every
    service read its files again; with `ends_on_hangup` it means that the terminal closes, and ends
    the process (unless it runs under `nohup`).
    """
    signalled = asyncio.Event()

    def hang_up() -> None:
        for service in services:
            service.hang_up()

    acts: dict[int, Callable[[], None]] = {
        signal.SIGTERM: signalled.set,
        signal.SIGINT: signalled.set,
    }
    if not ends_on_hangup:
        acts[signal.SIGHUP] = hang_up
    elif signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        acts[signal.SIGHUP] = signalled.set
    with _heeding(acts), suppress(_StopRequested):
        await together(
            *(service.run() for service in services),
            *loops,
            _announce(services, on_ready),
            _end(signalled, services),
        )


class _StopRequested(Exception):
    """A signal asked for the end."""


async def _end(signalled: asyncio.Event, services: Sequence[ServedApp]) -> None:
    await signalled.wait()
    for service in services:
        service.leaving.set()
    await asyncio.sleep(max((each.linger_seconds for each in services), default=0.0))
    raise _StopRequested


async def _announce(services: Iterable[ServedApp], on_ready: Callable[[], None]) -> None:
    for service in services:
        await service.accepting.wait()
        while service.probes.unready():  # noqa: ASYNC110 - asked as a probe asks
            await asyncio.sleep(_LOOK_SECONDS)
    on_ready()


@contextmanager
def _heeding(acts: Mapping[int, Callable[[], None]]) -> Iterator[None]:
    """Signals are handled until the last loop has ended."""
    loop = asyncio.get_running_loop()
    for number, act in acts.items():
        # not the main thread (tests): the caller cancels instead
        with suppress(ValueError, RuntimeError):
            loop.add_signal_handler(number, act)
    try:
        yield
    finally:
        for number in acts:
            with suppress(ValueError, RuntimeError):
                loop.remove_signal_handler(number)
