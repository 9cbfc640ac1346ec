"""How old the values of sound nodes are while some exporters hang, against the same with none that hangs.

    .venv/bin/python -m bench.exporter_pages [--pages 5000] [--hanging 100] [--interval 5] [--compat none]

Aim: ≤ 1.2 times. A process of its own serves the pages on loopback: the page of a simulated node with eight
cards (160 kB), under as many names as there are pages; those that hang take the connection and never answer.
Ages are those of all readings of `latest`, looked at twice a second after everything has been read twice.
CPU % is what the reader used of one core: where it uses all of one, pages come as fast as it reads them.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from bench.laptop_start import memory
from tests.waiting import until, wait_until

from fairlead.edge.files.clock import WallClock
from fairlead.edge.prometheus.exporter_pages import ExporterPages
from fairlead.edge.prometheus.one_page import read_page
from fairlead.wire.metrics.gpu_readings import parse_readings
from fairlead.wire.metrics.prom_text import parse_page

LOOKS_PER_SECOND = 2
PAGE_SECONDS = 60.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=5000)
    parser.add_argument("--hanging", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--interval", type=float, default=5.0)
    parser.add_argument("--compat", default="dcgm,legacy", help="families of the page beside the native ones, or none")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--serve", metavar="FILE", help=argparse.SUPPRESS)
    args = parser.parse_args()
    import uvloop

    if args.serve:
        uvloop.run(serve(Path(args.serve).read_text(encoding="utf-8")))
        return
    logging.disable()
    with tempfile.TemporaryDirectory(prefix="fairlead-bench-") as directory:
        page = Path(directory) / "page"
        page.write_text(simulated_page(directory, args.compat), encoding="utf-8")
        cards = len(parse_readings(parse_page(page.read_text(encoding="utf-8")).samples, 0.0))
        print(f"{args.pages} pages of {page.stat().st_size / 1000:.0f} kB, {cards} cards each, read every {args.interval:.0f} s")
        server = subprocess.Popen([sys.executable, "-m", "bench.exporter_pages", "--serve", str(page)], stdout=subprocess.PIPE, text=True)
        try:
            assert server.stdout is not None
            url = server.stdout.readline().strip()
            for _ in range(args.rounds):
                compare(url, args, cards)
        finally:
            server.kill()
            server.wait()


def compare(url: str, args: argparse.Namespace, cards: int) -> None:
    import uvloop

    first = 0.0
    for hanging in (0, args.hanging):
        ages, busy = uvloop.run(measure(url, args, hanging, cards))
        p50, p99 = statistics.median(ages), statistics.quantiles(ages, n=100, method="inclusive")[-1]
        first = first or p99
        machine = f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores, RSS {memory(os.getpid(), 'VmRSS'):.0f} MiB"
        said = f"age p50 {p50:.2f} s, p99 {p99:.2f} s ({p99 / first:.2f} of the first), most {max(ages):.2f} s"
        print(f"{hanging:>5} hang: {said}; CPU {busy:.0%}; {machine}", flush=True)


async def measure(url: str, args: argparse.Namespace, hanging: int, cards: int) -> tuple[list[float], float]:
    """Ages of sound cards' values, and how much of a core the reader used."""
    urls = [f"{url}/{'hang' if number < hanging else 'node'}-{number}/metrics" for number in range(args.pages)]
    stale_seconds = max(60.0, 6 * args.interval)
    pages, clock = ExporterPages(urls, WallClock(), interval_seconds=args.interval, stale_after_seconds=stale_seconds), WallClock()
    reading = asyncio.create_task(pages.run())
    sound = args.pages - hanging
    await until(lambda: len(pages.latest()) == cards * sound and pages.tally().reads >= 2 * sound, 600.0)
    ages: list[float] = []
    began, used = time.monotonic(), time.process_time()
    while time.monotonic() - began < args.seconds:
        await asyncio.sleep(1 / LOOKS_PER_SECOND)
        now = clock.now()
        ages += [now - each.read_at for each in pages.latest()[::cards]]
    busy = (time.process_time() - used) / (time.monotonic() - began)
    reading.cancel()
    with suppress(asyncio.CancelledError):
        await reading
    return ages, busy


def simulated_page(folder: str, compat: str) -> str:
    """What the exporter of one simulated node says."""
    argv = [sys.executable, "-m", "fairlead", "gpu-exporter", "--backend=sim", "--listen=127.0.0.1:0", f"--compat={compat}"]
    process = subprocess.Popen(argv, env={**os.environ, "HOME": folder}, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        url = "http://" + line.split(" http://", 1)[1].split("/", 1)[0] + "/metrics"
        wait_until("its cards answer", lambda: "\nfairlead_gpu_up{" in read_page(url), PAGE_SECONDS, 0.2)
        return read_page(url)
    finally:
        process.kill()
        process.wait()


async def serve(page: str) -> None:
    """`/node-N/metrics`: the page, of a node and cards of that name; `/hang-N/metrics`: nothing, for ever."""
    (node,) = set(re.findall(r'node_name="([^"]+)"', page))
    parts = page.replace("GPU-", "GPU-NODE-").replace(node, "NODE").encode().split(b"NODE")

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            while head := await reader.readuntil(b"\r\n\r\n"):
                name = head.split(b"/", 2)[1]
                if name.startswith(b"hang"):
                    await reader.read()
                body = name.join(parts)
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=1024)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    main()
