"""The simulated cluster behind its HTTP server, on a thread of its own, for tests that use it from
outside.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.waiting import HANG_SECONDS

from fairlead.apps.server import bind_socket, serve
from fairlead.ports import Clock
from fairlead_sim.access.roles import install_roles
from fairlead_sim.api.credentials import kubeconfig_entries, make_credentials, render_kubeconfig
from fairlead_sim.api.exec import PodPrograms
from fairlead_sim.api.logs import PodLogs
from fairlead_sim.api.server import ApiServer
from fairlead_sim.store.accounts import Accounts
from fairlead_sim.store.cluster import StoredCluster


@dataclass
class WrittenLogs:
    """Lines by (namespace, pod, container, previous), filled by tests."""

    written: dict[tuple[str, str, str, bool], list[tuple[float, str]]] = field(default_factory=dict)

    def lines(
        self, namespace: str, pod: str, container: str, previous: bool
    ) -> Sequence[tuple[float, str]] | None:
        return self.written.get((namespace, pod, container, previous), None if previous else ())


@dataclass
class SimulatedServer:
    """A running server. The cluster belongs to the server's thread: use it only through `do`."""

    kubeconfig: Path
    address: str
    cluster: StoredCluster
    logs: WrittenLogs
    loop: asyncio.AbstractEventLoop

    def do(self, act: Callable[[StoredCluster], Any]) -> Any:
        """Run `act` on the server's own thread and return its result."""

        async def acting() -> Any:
            return act(self.cluster)

        return asyncio.run_coroutine_threadsafe(acting(), self.loop).result(timeout=HANG_SECONDS)


@contextmanager
def simulated_server(
    folder: Path,
    clock: Clock,
    *,
    log_capacity: int = 10_000,
    bookmark_seconds: float = 60.0,
    cluster: StoredCluster | None = None,
    written: PodLogs | None = None,
    programs: PodPrograms | None = None,
) -> Iterator[SimulatedServer]:
    """A served simulated cluster for the block; it is empty and without controllers unless
    `cluster` is a world's.
    """
    credentials, logs = make_credentials(), WrittenLogs()
    cluster = cluster or bare_cluster(clock, log_capacity)
    sock = bind_socket("127.0.0.1", 0)
    address = f"https://127.0.0.1:{sock.getsockname()[1]}"
    (folder / "simulated.kubeconfig").write_bytes(
        render_kubeconfig(kubeconfig_entries(address, credentials))
    )
    app = ApiServer(
        cluster,
        clock,
        [credentials.token],
        logs=written or logs,
        programs=programs,
        bookmark_seconds=bookmark_seconds,
    )
    loop = asyncio.new_event_loop()
    ready = asyncio.Event()
    serving = loop.create_task(
        serve(app, sock=sock, ssl=credentials.ssl, ready=ready, web_sockets=True)
    )
    thread = threading.Thread(target=_run, args=(loop, serving), name="simulated-api", daemon=True)
    thread.start()
    asyncio.run_coroutine_threadsafe(ready.wait(), loop).result(timeout=HANG_SECONDS)
    try:
        yield SimulatedServer(folder / "simulated.kubeconfig", address, cluster, logs, loop)
    finally:
        loop.call_soon_threadsafe(serving.cancel)
        thread.join(timeout=HANG_SECONDS)


def bare_cluster(clock: Clock, log_capacity: int = 10_000) -> StoredCluster:
    """The objects that every namespace and every cluster has, without any controller."""
    cluster = StoredCluster(clock, log_capacity=log_capacity)
    install_roles(cluster)
    Accounts(cluster).publish("an authority")
    return cluster


def _run(loop: asyncio.AbstractEventLoop, serving: asyncio.Task[None]) -> None:
    try:
        loop.run_until_complete(serving)
    except asyncio.CancelledError:
        pass
    finally:
        loop.close()
