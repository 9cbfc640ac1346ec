"""The page of data sets on a laptop with many claims."""

from __future__ import annotations

import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
from msgspec import structs
from tests.console.clusters import cluster, gpu_node
from tests.console.worlds import still_world
from tests.contracts.api_client import ApiClient
from tests.kube.laptop import Laptop, running_laptop

from bench.support.options import options
from fairlead.apps.console_server import ConsoleServer
from fairlead.apps.server import bind_socket
from fairlead.console.pages.endpoints import BASE
from fairlead.edge.connection.kubeconfig import find_connection
from fairlead.edge.queries.page_reads import KubeDataQuestions
from fairlead.wire.data.stand_in_kinds import stand_in_definitions

CLAIMS, DATA_SETS, SPACES = 10_000, 2_000, 100
AIM_SECONDS = 0.2
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
PAGES = (
    "/datasets",
    "/datasets?q=claim-77",
    "/datasets?accelerated=yes&sort=-sizeBytes",
    "/datasets?status=pending&sort=-name&page=20",
)


def measure_datasets() -> None:
    """The page Data sets, with 10,000 claims and 2,000 data sets on a laptop's API server.

        python -m bench datasets [--requests 100]

    The first request waits for the first reading. Then each page is asked again and again, while
    the data are read again every few seconds.
    """
    parser = options(measure_datasets)
    parser.add_argument("--requests", type=int, default=100)
    requests = parser.parse_args().requests
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "laptop.log"
        with running_laptop(log, "--scenario=empty") as laptop:
            began = time.monotonic()
            _fill(laptop)
            print(f"objects made in {time.monotonic() - began:.0f} s", flush=True)
            asyncio.run(_measure(laptop, requests))


def _fill(laptop: Laptop) -> None:
    api = ApiClient("laptop", laptop.kubeconfig, keeps_connections=True)
    for each in stand_in_definitions():
        api.post(DEFINITIONS, each)
    for number in range(SPACES):
        api.post("/api/v1/namespaces", {"metadata": {"name": f"team-{number}"}})
    for path, manifest in _objects():
        made = api.post(path, manifest)
        assert made.status == 201, made.message


def _objects() -> Iterator[tuple[str, dict[str, Any]]]:
    for number in range(CLAIMS):
        place = f"/api/v1/namespaces/team-{number % SPACES}/persistentvolumeclaims"
        spec = {
            "accessModes": ["ReadWriteMany"],
            "storageClassName": "",
            "resources": {"requests": {"storage": "5Gi"}},
        }
        meta = {"name": f"claim-{number}"}
        yield (
            place,
            {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta}
            | {"spec": spec},
        )
    version = "data.fluid.io/v1alpha1"
    for number in range(DATA_SETS):
        place = f"/apis/{version}/namespaces/team-{number % SPACES}/datasets"
        mounts = [{"mountPoint": f"pvc://claim-{number}", "name": "raw", "path": "/"}]
        meta = {"name": f"claim-{number}-acc"}
        yield (
            place,
            {"apiVersion": version, "kind": "Dataset", "metadata": meta}
            | {"spec": {"mounts": mounts}},
        )


async def _measure(laptop: Laptop, requests: int) -> None:
    connection = find_connection(str(laptop.kubeconfig))
    assert connection is not None
    data = KubeDataQuestions(connection, time.time)
    world = structs.replace(still_world(cluster([gpu_node()])), data=data)
    sock = bind_socket("127.0.0.1", 0)
    service = ConsoleServer(world).service(sock)
    task = asyncio.create_task(service.run())
    await service.accepting.wait()
    base = f"http://127.0.0.1:{sock.getsockname()[1]}{BASE}"
    async with aiohttp.ClientSession() as session:
        print(f"first request: {await _ask(session, base + PAGES[0]):.2f} s")
        worst = 0.0
        for path in PAGES:
            took = [await _ask(session, base + path) for _ in range(requests)]
            p95 = statistics.quantiles(took, n=20)[-1]
            worst = max(worst, p95)
            print(f"{path}: median {statistics.median(took) * 1000:.0f} ms, p95 {p95 * 1000:.0f}")
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await data.close()
    print(f"\naim: p95 {worst:.3f} s (<= {AIM_SECONDS} s); load {os.getloadavg()[0]:.1f}")


async def _ask(session: aiohttp.ClientSession, address: str) -> float:
    """With a pause, in which readings go on."""
    await asyncio.sleep(0.05)
    began = time.monotonic()
    async with session.get(address) as answer:
        await answer.read()
        assert answer.status == 200
    return time.monotonic() - began
