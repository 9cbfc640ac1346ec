"""How long after a card's value changed does the cluster exporter's page say it? Every beat as by default.

    .venv/bin/python -m bench.value_to_series [--changes 60]

A library plays the driver; the GPU exporter (a process) asks it every 5 s, the cluster exporter (here, over
a cluster of one node) reads its page every 5 s and makes its own when something is new. The changes come at
any moment of these beats. Waits add up; no cleverness would make a beat shorter than it is.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import statistics
import time
import urllib.request
from functools import partial

from bench.gpu_exporter import CARDS, exporter, played_driver
from tests.apps.fakes import FakeCluster
from tests.console.clusters import cluster, gpu_node
from tests.nvml.stub import StubState
from tests.waiting import wait_until

from fairlead.apps.cluster_exporter import ClusterExporter, ClusterExporterSettings
from fairlead.apps.server import bind_socket
from fairlead.edge.files.clock import WallClock
from fairlead.edge.prometheus.exporter_pages import ExporterPages

BEAT_MS = 5000
LOOK_SECONDS = 0.02
NODE = "n1"
SERIES = f'fairlead_node_gpu_utilization_ratio{{node_name="{NODE}"'


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--changes", type=int, default=60)
    args = parser.parse_args()
    with played_driver() as (folder, library, state):
        os.environ["NODE_NAME"] = NODE
        with exporter(library, folder, BEAT_MS) as (_, url):
            waits = asyncio.run(measured(url, state, args.changes))
    p50, p99 = statistics.median(waits), statistics.quantiles(waits, n=100, method="inclusive")[-1]
    print(f"{len(waits)} changes: p50 {p50:.1f} s, p99 {p99:.1f} s, at most {max(waits):.1f} s; two beats are {2 * BEAT_MS / 1000:.0f} s")


async def measured(url: str, state: StubState, changes: int) -> list[float]:
    clock = WallClock()
    readings = ExporterPages([f"{url}/metrics"], clock)
    made = ClusterExporter(FakeCluster(cluster([gpu_node(NODE, CARDS)])), readings, clock, ClusterExporterSettings())
    sock = bind_socket("127.0.0.1", 0)
    page = f"http://127.0.0.1:{sock.getsockname()[1]}/metrics"
    loops = [asyncio.create_task(each) for each in (made.service(sock).run(), readings.run())]
    rng, waits = random.Random(0), []
    try:
        for turn in range(changes):
            await asyncio.sleep(rng.uniform(0, BEAT_MS / 1000))
            wanted = 10 + turn % 80
            state.say({f"{card}.gpu": wanted for card in range(CARDS)})
            began = time.monotonic()
            await asyncio.to_thread(wait_until, "the page says it", partial(says, page, wanted), 60.0, LOOK_SECONDS)
            waits.append(time.monotonic() - began)
    finally:
        for loop in loops:
            loop.cancel()
        await asyncio.gather(*loops, return_exceptions=True)
    return waits


def says(page: str, percent: int) -> bool:
    try:
        with urllib.request.urlopen(page, timeout=10) as answer:
            lines = answer.read().decode().splitlines()
    except OSError:
        return False
    return any(line.startswith(SERIES) and abs(100 * float(line.rsplit(" ", 1)[1]) - percent) < 0.01 for line in lines)


if __name__ == "__main__":
    main()
