"""How soon a bound pod is in the ledger, for a recorder's process with a store of each engine."""

from __future__ import annotations

import asyncio
import json
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from sqlalchemy import select
from tests.kube.objects import gpu_node, pod
from tests.kube.servers import running

from bench.ledger import engine_addresses
from bench.support.doors import running_loop
from bench.support.options import options
from fairlead.apps.server import bind_socket, serve
from fairlead.edge.connection.connection import Connection
from fairlead.edge.connection.credentials import Credentials, IssuedCredentials, bearer
from fairlead.edge.kube.api_request import ApiRequest
from fairlead.edge.kube.kube_blocking import KubeBlocking
from fairlead.edge.store import engines
from fairlead.edge.store.address import SQLITE, StoreAddress
from fairlead.edge.store.ledger_tables import pod_intervals
from fairlead.run.hooks.sharing_hooks import sharing_world
from fairlead_sim.api.server import ApiServer
from fairlead_sim.scenario.file import load_scenario
from fairlead_sim.world.driver import Driver

TOKEN: Final = "bench"
SPACE: Final = "default"
GPUS: Final = 8
LOOK_SECONDS: Final = 0.01
"""Between two looks into the store: a row is found at most this much late."""
LAST_SECONDS: Final = 30.0
"""After the last bind, until rows count as missing."""


def measure_usage_rows() -> None:
    """From the bind of a pod until its row is in the store.

    A process `fairlead usage-recorder` follows a simulated API server of this process, and writes
    to a store of each engine. Pods are bound one by one over the time. The figure begins when the
    bind is sent, and ends when another connection to the store has found the row.
    """
    parser = options(measure_usage_rows)
    parser.add_argument("--pods", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=60.0, help="in which they are bound")
    parser.add_argument("--engine", default="", help="sqlite, postgresql or mariadb; else all")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for engine, address in engine_addresses(Path(folder), chosen.engine):
            with _api() as url:
                found = sorted(_measured(Path(folder), url, address(), chosen.pods, chosen.seconds))
            missing = chosen.pods - len(found)
            print(
                f"{engine:<11} {len(found)} pods in {chosen.seconds:g} s: median "
                f"{statistics.median(found):.2f} s, p99 {found[-1 - len(found) // 100]:.2f} s, "
                f"longest {found[-1]:.2f} s; {missing} without a row",
                flush=True,
            )


@contextmanager
def _api() -> Iterator[str]:
    """A simulated API server in a thread of its own, whose time is that of this machine."""
    world = sharing_world(load_scenario("empty"), 0, time.time())
    driver, sock = Driver(world, 1.0), bind_socket("127.0.0.1", 0)
    app = ApiServer(world.cluster, world.clock, [TOKEN], catch_up=driver.catch_up)
    tasks: list[asyncio.Future[Any]] = []

    async def begin() -> None:
        works = serve(app, sock=sock, stopping=app.stop), driver.run()
        tasks.extend(asyncio.ensure_future(each) for each in works)

    async def end() -> None:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    with running_loop() as loop:
        loop.run(begin())
        try:
            yield f"http://127.0.0.1:{sock.getsockname()[1]}"
        finally:
            loop.run(end())


def _measured(
    folder: Path, url: str, address: StoreAddress, pods: int, seconds: float
) -> Iterator[float]:
    """Seconds of each pod."""
    store = f"--store={address.place}"
    more: list[str] = []
    if address.engine == SQLITE:
        store = f"--store=sqlite:///{address.file}"
    else:
        secret = folder / "password"
        secret.write_text(address.password)
        secret.chmod(0o600)
        more.append(f"--store-password-file={secret}")
    path = folder / "bench.kubeconfig"
    path.write_text(json.dumps(_kubeconfig(url)))
    words = (
        f"--kubeconfig={path}",
        store,
        *more,
        "--gpu-source=none",
        f"--lease-namespace={SPACE}",
    )
    issued = IssuedCredentials(authorization=bearer(TOKEN))
    connection = Connection(url, Credentials(lambda: issued, is_renewable=False))
    with KubeBlocking(connection) as api:
        nodes = -(-pods // GPUS)
        for number in range(nodes):
            _post(api, "/api/v1/nodes", gpu_node(f"bench-{number}", GPUS))
        for number in range(pods):
            made = pod(f"bench-{number}", namespace=SPACE, gpus=1)
            made["spec"]["schedulerName"] = "bench"
            _post(api, f"/api/v1/namespaces/{SPACE}/pods", made)
        with running("usage-recorder", *words, log=folder / "recorder.log"):
            names: dict[str, float] = {}
            looking = _Looking(address, pods)
            looking.start()
            began = time.monotonic()
            for number in range(pods):
                due = began + seconds * number / pods
                time.sleep(max(0.0, due - time.monotonic()))
                name = f"bench-{number}"
                names[name] = time.monotonic()
                _post(
                    api,
                    f"/api/v1/namespaces/{SPACE}/pods/{name}/binding",
                    {
                        "apiVersion": "v1",
                        "kind": "Binding",
                        "metadata": {"name": name},
                        "target": {"kind": "Node", "name": f"bench-{number % nodes}"},
                    },
                )
            looking.join(LAST_SECONDS)
            looking.is_over = True
            looking.join()
    yield from (looking.found[name] - names[name] for name in names if name in looking.found)


class _Looking(threading.Thread):
    """`found`: when the row of each pod was found, by its name."""

    def __init__(self, address: StoreAddress, pods: int) -> None:
        super().__init__(daemon=True)
        self.found: dict[str, float] = {}
        self.is_over = False
        self._pods = pods
        self._engine = engines.make_engine(address, 30.0)

    def run(self) -> None:
        last, columns = 0, pod_intervals.c
        while len(self.found) < self._pods and not self.is_over:
            asked = select(columns.id, columns.pod).where(columns.id > last)
            with self._engine.connect() as connection:
                rows = connection.execute(asked).all()
            now = time.monotonic()
            for id, name in rows:
                last = max(last, id)
                if name.startswith("bench-"):
                    self.found.setdefault(name, now)
            time.sleep(LOOK_SECONDS)
        self._engine.dispose()


def _post(api: KubeBlocking, path: str, body: dict[str, Any]) -> None:
    api.send(ApiRequest("create", "POST", path, json.dumps(body).encode()))


def _kubeconfig(url: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "bench", "cluster": {"server": url}}],
        "users": [{"name": "bench", "user": {"token": TOKEN}}],
        "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": "bench"}}],
        "current-context": "bench",
    }
