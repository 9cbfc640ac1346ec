"""Every HTTP server of Fairlead, each on a free port, started as its process starts it, and a
client that sends bytes to it.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import ssl
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from socket import socket
from typing import Final

from msgspec import structs
from tests.apps.company import company, readings
from tests.apps.fakes import FakeCluster, FakeDevices, FakeReadings, FixedClock, four_cards
from tests.apps.people_fakes import FakePeopleApi
from tests.apps.quota_fakes import FakeQuotaApi, FakeQuotaServer
from tests.apps.share_fakes import FakeServer, FakeSharingApi
from tests.apps.usage_fakes import FakeUsageApi, recorder_process
from tests.console.clusters import living_cluster
from tests.console.worlds import still_world
from tests.rules.sharing import node
from tests.sim.objects import StillClock
from tests.sim.small_world import small_world
from tests.usage.memory_ledger import MemoryLedger
from tests.waiting import HANG_SECONDS

from fairlead.apps.admission_webhook import webhook_app
from fairlead.apps.cluster_exporter import ClusterExporter, ClusterExporterSettings
from fairlead.apps.console_server import ConsoleServer, ConsoleSettings
from fairlead.apps.extender import Extender
from fairlead.apps.gpu_exporter import GpuExporter, GpuExporterSettings
from fairlead.apps.people.people_controller import PeopleController
from fairlead.apps.quota_controller import QuotaController
from fairlead.apps.scheduler_extender import SchedulerExtender
from fairlead.apps.server import bind_socket
from fairlead.apps.service import ServedApp
from fairlead.settings import READ_SECONDS
from fairlead_sim.api.credentials import make_credentials
from fairlead_sim.api.server import ApiServer
from fairlead_sim.store.cluster import StoredCluster
from fairlead_sim.world.driver import Driver

TOKEN: Final = "a-token"
CREDENTIALS: Final = make_credentials()
Start = Callable[[socket, float], ServedApp]
"""Starts a server on this socket. The number is how many seconds it waits for a request."""


def _console(sock: socket, patience: float) -> ServedApp:
    world = structs.replace(still_world(living_cluster()), timekeeper=Driver(small_world(), 1.0))
    return ConsoleServer(world, ConsoleSettings(read_seconds=patience)).service(sock)


def _gpu_exporter(sock: socket, patience: float) -> ServedApp:
    chosen = GpuExporterSettings(node="gpu-1", read_seconds=patience)
    return GpuExporter(FakeDevices(four_cards()), FixedClock(), chosen).service(sock)


def _cluster_exporter(sock: socket, patience: float) -> ServedApp:
    chosen = ClusterExporterSettings(node="host-1", read_seconds=patience)
    return ClusterExporter(
        FakeCluster(company()), FakeReadings(readings()), FixedClock(), chosen
    ).service(sock)


def _scheduler_extender(sock: socket, patience: float) -> ServedApp:
    chance = random.Random(1)
    driver = Extender(
        FakeSharingApi(FakeServer(chance, {"n1": node("n1", (15,))}), chance),
        "me",
        lease_name="ns/lease",
    )
    return ServedApp(
        app=SchedulerExtender(driver), sock=sock, loops=(driver.run,), read_seconds=patience
    )


def _quota_controller(sock: socket, patience: float) -> ServedApp:
    service = QuotaController(FakeQuotaApi(FakeQuotaServer(time.time)), "me").service(sock)
    return structs.replace(service, read_seconds=patience)


def _people_controller(sock: socket, patience: float) -> ServedApp:
    service = PeopleController(FakePeopleApi(), "me").service(sock)
    return structs.replace(service, read_seconds=patience)


def _usage_recorder(sock: socket, patience: float) -> ServedApp:
    process = recorder_process(FakeUsageApi(), MemoryLedger(), FakeReadings())
    return structs.replace(process.service(sock), read_seconds=patience)


def _admission_webhook(sock: socket, patience: float) -> ServedApp:
    return ServedApp(app=webhook_app(), sock=sock, tls=CREDENTIALS.ssl, read_seconds=patience)


def _api_server(sock: socket, patience: float) -> ServedApp:
    app = ApiServer(StoredCluster(StillClock()), StillClock(), [TOKEN])
    return ServedApp(
        app=app,
        sock=sock,
        tls=CREDENTIALS.ssl,
        read_seconds=patience,
        stopping=app.stop,
        web_sockets=True,
    )


SERVERS: Final[dict[str, Start]] = {
    "console": _console,
    "gpu exporter": _gpu_exporter,
    "cluster exporter": _cluster_exporter,
    "scheduler extender": _scheduler_extender,
    "quota controller": _quota_controller,
    "people controller": _people_controller,
    "usage recorder": _usage_recorder,
    "admission webhook": _admission_webhook,
    "api server": _api_server,
}
WRITES: Final = {
    "console": b"/api/v1/clock",
    "gpu exporter": b"/metrics",
    "cluster exporter": b"/metrics",
    "scheduler extender": b"/gpushare-scheduler/filter",
    "quota controller": b"/metrics",
    "people controller": b"/metrics",
    "usage recorder": b"/metrics",
    "admission webhook": b"/scheduler",
    "api server": b"/api/v1/namespaces",
}
"""For each server an address to which a POST is sent: an address that accepts writes, if the server
has one.
"""
WITH_TLS: Final = ("admission webhook", "api server")


class Stranger:
    """Opens connections to a server and sends any bytes."""

    def __init__(self, port: int, trust: ssl.SSLContext | None) -> None:
        self.port, self._trust = port, trust

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(
            "localhost" if self._trust else "127.0.0.1", self.port, ssl=self._trust
        )

    async def say(self, words: bytes, seconds: float = HANG_SECONDS) -> bytes:
        """Everything that the server answers until it closes the connection; TimeoutError if it
        does not close it.
        """
        async with asyncio.timeout(seconds):
            reader, writer = await self.connect()
            try:
                # a server may refuse before everything is sent
                with contextlib.suppress(ConnectionError):
                    writer.write(words)
                    await writer.drain()
                with contextlib.suppress(ConnectionResetError):
                    return await reader.read()
                return b""
            finally:
                writer.close()

    async def ask(
        self, target: bytes, method: bytes = b"GET", headers: bytes = b"", body: bytes = b""
    ) -> bytes:
        """The answer to one request with `Connection: close`."""
        head = (
            b"%s %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nConnection: "
            b"close\r\n"
        ) % (method, target, TOKEN.encode())
        return await self.say(head + headers + b"\r\n" + body)


@asynccontextmanager
async def running(name: str, patience: float = READ_SECONDS) -> AsyncIterator[Stranger]:
    """The server, ready to answer, and a client for it. `patience`: seconds that the server waits
    for a request.
    """
    sock = bind_socket("127.0.0.1", 0)
    service = SERVERS[name](sock, patience)
    trust = (
        ssl.create_default_context(cadata=CREDENTIALS.authority.decode())
        if name in WITH_TLS
        else None
    )
    serving = asyncio.create_task(service.run())
    try:
        await asyncio.wait_for(service.accepting.wait(), HANG_SECONDS)
        yield Stranger(sock.getsockname()[1], trust)
    finally:
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)


def build_client(folder: Path) -> Path:
    """Writes a built web client of three files to this folder."""
    (folder / "assets").mkdir()
    (folder / "assets" / "index-abc123.js").write_text("let a = 1;" * 500)
    (folder / "favicon.svg").write_text("<svg/>")
    page = (
        '<meta name="csp-nonce" content="__CSP_NONCE__"><script '
        'src="./assets/index-abc123.js"></script><link href="./favicon.svg">'
    )
    (folder / "index.html").write_text(page)
    return folder
