"""Every HTTP server of ours, one at a time on a free port, as its process starts it, and a stranger who speaks to it in bytes."""

from __future__ import annotations

import asyncio
import contextlib
import random
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from socket import socket
from typing import Any, Final

from msgspec import structs
from tests.apps.company import company, readings
from tests.apps.fakes import FakeCluster, FakeDevices, FakeReadings, FixedClock, four_cards
from tests.apps.share_fakes import FakeServer, FakeSharingApi
from tests.console.clusters import living_cluster
from tests.console.worlds import still_world
from tests.rules.sharing import node
from tests.sim.objects import StillClock
from tests.sim.small_world import small_world

from fairlead.apps import cluster_exporter, gpu_exporter
from fairlead.apps.admission_webhook import webhook_app
from fairlead.apps.console_server import ConsoleServer, ConsoleSettings
from fairlead.apps.extender import Extender
from fairlead.apps.scheduler_extender import SchedulerExtender
from fairlead.apps.server import bind_socket, serve
from fairlead.settings import READ_SECONDS
from fairlead_sim.api.credentials import make_credentials
from fairlead_sim.api.server import ApiServer
from fairlead_sim.store.cluster import Cluster
from fairlead_sim.world.driver import Driver

TOKEN: Final = "a-token"
CREDENTIALS: Final = make_credentials()
Loops = Sequence[Coroutine[Any, Any, None]]
Start = Callable[[socket, asyncio.Event, float], Loops]
"""The loops of a server on this socket. It sets the event when it answers, and waits so many seconds for a request."""


def _console(sock: socket, ready: asyncio.Event, patience: float) -> Loops:
    world = structs.replace(still_world(living_cluster()), timekeeper=Driver(small_world(), 1.0))
    return (ConsoleServer(world, ConsoleSettings(read_seconds=patience)).run(sock, ready),)


def _gpu_exporter(sock: socket, ready: asyncio.Event, patience: float) -> Loops:
    chosen = gpu_exporter.GpuExporterSettings(node="gpu-1", read_seconds=patience)
    return (gpu_exporter.run(FakeDevices(four_cards()), FixedClock(), chosen, sock=sock, ready=ready),)


def _cluster_exporter(sock: socket, ready: asyncio.Event, patience: float) -> Loops:
    chosen = cluster_exporter.ClusterExporterSettings(node="host-1", read_seconds=patience)
    return (cluster_exporter.run(FakeCluster(company()), FakeReadings(readings()), FixedClock(), chosen, sock=sock, ready=ready),)


def _scheduler_extender(sock: socket, ready: asyncio.Event, patience: float) -> Loops:
    chance = random.Random(1)
    driver = Extender(FakeSharingApi(FakeServer(chance, {"n1": node("n1", (15,))}), chance), "me", lease_name="ns/lease")
    return driver.run(), serve(SchedulerExtender(driver), sock=sock, ready=ready, read_seconds=patience)


def _admission_webhook(sock: socket, ready: asyncio.Event, patience: float) -> Loops:
    return (serve(webhook_app(), sock=sock, ssl=CREDENTIALS.ssl, ready=ready, read_seconds=patience),)


def _api_server(sock: socket, ready: asyncio.Event, patience: float) -> Loops:
    app = ApiServer(Cluster(StillClock()), StillClock(), [TOKEN])
    return (serve(app, sock=sock, ssl=CREDENTIALS.ssl, ready=ready, read_seconds=patience, stopping=app.stop),)


SERVERS: Final[dict[str, Start]] = {
    "console": _console,
    "gpu exporter": _gpu_exporter,
    "cluster exporter": _cluster_exporter,
    "scheduler extender": _scheduler_extender,
    "admission webhook": _admission_webhook,
    "api server": _api_server,
}
WRITES: Final = {
    "console": b"/api/v1/clock",
    "gpu exporter": b"/metrics",
    "cluster exporter": b"/metrics",
    "scheduler extender": b"/gpushare-scheduler/filter",
    "admission webhook": b"/scheduler",
    "api server": b"/api/v1/namespaces",
}
"""An address of each to which a POST is sent: that of a write, if it has any."""
WITH_TLS: Final = ("admission webhook", "api server")


class Stranger:
    """Opens connections to a server and says whatever he likes."""

    def __init__(self, port: int, trust: ssl.SSLContext | None) -> None:
        self.port, self._trust = port, trust

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("localhost" if self._trust else "127.0.0.1", self.port, ssl=self._trust)

    async def say(self, words: bytes, seconds: float = 20.0) -> bytes:
        """All that the server answers until it closes the connection; TimeoutError when it keeps it."""
        async with asyncio.timeout(seconds):
            reader, writer = await self.connect()
            try:
                with contextlib.suppress(ConnectionError):  # a server may refuse before all has been said
                    writer.write(words)
                    await writer.drain()
                with contextlib.suppress(ConnectionResetError):
                    return await reader.read()
                return b""
            finally:
                writer.close()

    async def ask(self, target: bytes, method: bytes = b"GET", headers: bytes = b"", body: bytes = b"") -> bytes:
        """The answer to one request, after which the connection shall close."""
        head = b"%s %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nConnection: close\r\n" % (method, target, TOKEN.encode())
        return await self.say(head + headers + b"\r\n" + body)


@asynccontextmanager
async def running(name: str, patience: float = READ_SECONDS) -> AsyncIterator[Stranger]:
    """The server, ready to answer, and somebody before it. `patience`: how long it waits for a request."""
    sock, ready = bind_socket("127.0.0.1", 0), asyncio.Event()
    trust = ssl.create_default_context(cadata=CREDENTIALS.authority.decode()) if name in WITH_TLS else None
    running = [asyncio.ensure_future(loop) for loop in SERVERS[name](sock, ready, patience)]
    try:
        await asyncio.wait_for(ready.wait(), 30)
        yield Stranger(sock.getsockname()[1], trust)
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


def build_client(folder: Path) -> Path:
    """A built web client of three files in this folder."""
    (folder / "assets").mkdir()
    (folder / "assets" / "index-abc123.js").write_text("let a = 1;" * 500)
    (folder / "favicon.svg").write_text("<svg/>")
    page = '<meta name="csp-nonce" content="__CSP_NONCE__"><script src="./assets/index-abc123.js"></script><link href="./favicon.svg">'
    (folder / "index.html").write_text(page)
    return folder
