"""The console over a large cluster: the time to the first answer, then that of list routes.

    .venv/bin/python bench/console_boards.py [--nodes 5000] [--requests 300] [--pages holders]

Measured while nothing changes and while everything does. Over HTTP, one client. The ratio is to the same
requests over a cluster of three nodes in the same run: what is left of it is the server's own time.
`changing`: the cluster's version grows twice a second, so that every list is built anew all the time.
`--pages holders` asks for who holds GPUs alone: 20,000 of 50,000 pods; `--pages search` for names, ids and
labels of all of them.
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import statistics
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import aiohttp
import uvloop

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.console.clusters import large_cluster, living_cluster
from tests.console.worlds import StillCluster, still_world

from fairlead.apps.console_server import ConsoleServer
from fairlead.apps.server import bind_socket
from fairlead.console.pages.endpoints import BASE
from fairlead.model.snapshot import ClusterSnapshot

PAGES = (
    "/nodes",
    "/nodes?page=100",
    "/nodes?sort=-gpuUtilPercent,name&q=gpu-00",
    "/nodes?mode=exclusive&sort=ip",
    "/jobs?job_status=running&sort=-gpusRequested",
    "/gpus?status=allocated&sort=-utilPercent",
    "/quota/usage",
    "/overview",
)

HOLDERS = (
    "/holders",
    "/holders?page=100",
    "/holders?namespace=team-07&sort=-idleSeconds",
    "/holders/groups?by=owner",
    "/holders/groups?by=user",
)


SEARCHES = (
    "/search?q=worker",
    "/search?q=gpu-04999",
    "/search?q=uid-other-29",
    "/search?q=replica-type=worker",
    "/search?q=label-7=value-3",
    "/search?q=GPU-gpu-00042",
    "/search?q=e",
)
ASKED = {"boards": PAGES, "holders": HOLDERS, "search": SEARCHES}


async def measure(snapshot: ClusterSnapshot, requests: int, pages: Sequence[str], is_changing: bool) -> dict[str, float]:
    """First answer in seconds, p50 and p95 of list routes and the GPU map, and the largest answer in bytes.

    p50 and p95 are in milliseconds.
    """
    world = still_world(snapshot)
    sock = bind_socket("127.0.0.1", 0)
    serving = asyncio.create_task(ConsoleServer(world).service(sock).run())
    base = f"http://127.0.0.1:{sock.getsockname()[1]}{BASE}"
    async with aiohttp.ClientSession(auto_decompress=False) as session:

        async def ask(path: str, encoding: str = "gzip") -> tuple[float, int]:
            started = time.perf_counter()
            async with session.get(base + path, headers={"Accept-Encoding": encoding}) as answer:
                answer.raise_for_status()
                return time.perf_counter() - started, len(await answer.read())

        async def change() -> None:
            while is_changing:
                assert isinstance(world.cluster, StillCluster)
                world.cluster.show(world.cluster.snapshot())
                await asyncio.sleep(0.5)

        first, _ = await ask(pages[0])
        changing = asyncio.create_task(change())
        answers = []
        for number in range(requests):
            answers.append(await ask(pages[number % len(pages)]))
            await asyncio.sleep(0.02)
        whole_map, map_bytes = await ask("/gpus/map")
        _, raw_map_bytes = await ask("/gpus/map", "identity")
        changing.cancel()
    serving.cancel()
    with suppress(asyncio.CancelledError):
        await serving
    times = sorted(seconds for seconds, _ in answers)
    return {
        "first answer, s": first,
        "list p50, ms": statistics.median(times) * 1000,
        "list p95, ms": times[int(len(times) * 0.95)] * 1000,
        "largest list answer, KB compressed": max(size for _, size in answers) / 1000,
        "GPU map, ms": whole_map * 1000,
        "GPU map, KB raw (budget 1000)": raw_map_bytes / 1000,
        "GPU map, KB compressed": map_bytes / 1000,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--requests", type=int, default=300)
    parser.add_argument("--pages", choices=tuple(ASKED), default="boards")
    args = parser.parse_args()
    pages = ASKED[args.pages]
    large = large_cluster(args.nodes)
    columns = {
        "3 nodes": uvloop.run(measure(living_cluster(), args.requests, pages, is_changing=False)),
        f"{args.nodes} nodes": uvloop.run(measure(large, args.requests, pages, is_changing=False)),
        f"{args.nodes} nodes, changing": uvloop.run(measure(large, args.requests, pages, is_changing=True)),
    }
    print(f"{'':36}" + "".join(f"{name:>24}" for name in columns))
    for row in next(iter(columns.values())):
        print(f"{row:36}" + "".join(f"{column[row]:>24.2f}" for column in columns.values()))
    print(f"{'peak memory of the process, MiB':36}{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:>24.0f}")


if __name__ == "__main__":
    main()
