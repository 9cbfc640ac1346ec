"""The GPU exporter as a process, on a library that plays a driver with eight cards and answers at once.

    .venv/bin/python -m bench.gpu_exporter [--seconds 30] [--interval 1000] [--scrapes 400]

CPU and memory of a beat of so many milliseconds, against the same process with the longest beat there is
(its idling). Then what scrapers wait, ten at a time, against the same while a call of one card hangs, and
while a counters file of 100,000 lines is read anew every second. The library's own cost (it reads a table
in memory) is in the figures; a real driver's would be more.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import aiohttp
from bench.laptop_start import cpu_seconds, memory
from tests.nvml.stub import StubState, build_stub
from tests.waiting import wait_until

CARDS = 8
SCRAPERS = 10
IDLE_MS = 3_600_000
LINES = 100_000
USUAL = (Path(__file__).parents[1] / "src/fairlead/wire/metrics/default-counters.csv").read_text(encoding="utf-8")
AGAIN = "DCGM_FI_DEV_GPU_UTIL, gauge, GPU utilization (in %).\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--interval", type=int, default=1000)
    parser.add_argument("--scrapes", type=int, default=400)
    args = parser.parse_args()
    with played_driver() as (folder, library, state):
        idle, _ = cost(library, folder, IDLE_MS, args.seconds, still=True)
        busy, held = cost(library, folder, args.interval, args.seconds, still=True)
        beat = (busy - idle) * args.interval / args.seconds / 1000
        print(f"{CARDS} cards, a beat each {args.interval} ms: {busy / args.seconds:.2%} of a core, idle {idle / args.seconds:.2%}")
        print(f"one beat {1000 * beat:.1f} ms of CPU, so {beat / 5:.2%} of a core at 5 s; RSS {held:.0f} MiB")
        with exporter(library, folder, 1000) as (_, url):
            alone = asyncio.run(scraped(url, args.scrapes))
            state.say({"hang.nvmlDeviceGetUtilizationRates.3": 1})
            wait_until("it hangs", lambda: "hangs" in state.calls(), 30.0, 0.05)
            hanging = asyncio.run(scraped(url, args.scrapes))
            state.say({"hang.nvmlDeviceGetUtilizationRates.3": None})
        counters = folder / "counters.csv"
        counters.write_text(USUAL, encoding="utf-8")
        with exporter(library, folder, 1000, flags=["-f", str(counters)]) as (_, url), rewritten(counters):
            reloading = asyncio.run(scraped(url, args.scrapes))
        for name, waits in (("no call hangs", alone), ("one call hangs", hanging), (f"{LINES} counters read anew and anew", reloading)):
            p50, p99 = statistics.median(waits), statistics.quantiles(waits, n=100, method="inclusive")[-1]
            ratio = p99 / statistics.quantiles(alone, n=100, method="inclusive")[-1]
            print(f"/metrics, {SCRAPERS} scrapers, {name}: p50 {1000 * p50:.1f} ms, p99 {1000 * p99:.1f} ms ({ratio:.2f} of the first)")


@contextmanager
def played_driver() -> Iterator[tuple[Path, Path, StubState]]:
    """A folder of its own, and in it a library with eight cards of the newest kind and what it shows."""
    with tempfile.TemporaryDirectory(prefix="fairlead-bench-") as directory:
        folder = Path(directory)
        library, state = build_stub(folder), StubState(folder)
        state.show_cards(CARDS)
        for card in range(CARDS):
            state.show_h200(card)
        state.say({"longest-wait": 60_000})  # who waits for an event sleeps, as with a driver
        yield folder, library, state


@contextmanager
def rewritten(counters: Path) -> Iterator[None]:
    """The file is another one every second: of many lines that name what is printed already."""
    has_ended = threading.Event()

    def write() -> None:
        for turn in itertools.count():
            written = counters.with_suffix(".new")
            written.write_text(USUAL + "".join(f"# {turn} {line}\n{AGAIN}" for line in range(LINES // 2)), encoding="utf-8")
            written.replace(counters)
            if has_ended.wait(1.0):
                return

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        has_ended.set()
        thread.join()


@contextmanager
def exporter(library: Path, folder: Path, interval_ms: int, *, still: bool = False, flags: Sequence[str] = ()) -> Iterator[tuple[int, str]]:
    """Its pid and address, once its cards have answered. `still`: the library reads its table once."""
    argv = [sys.executable, "-m", "fairlead", "gpu-exporter", "--listen=127.0.0.1:0", f"--nvml-library={library}", "--kmsg=off"]
    env = {**os.environ, "STUB_NVML": str(folder), "HOME": str(folder), **({"STUB_NVML_STILL": "1"} if still else {})}
    argv += ["-c", str(interval_ms), f"--kubelet-dir={folder}", *flags]
    process = subprocess.Popen(argv, env=env, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        line = ""
        while " http://127.0.0.1:" not in line:
            line = process.stderr.readline()
            if not line:
                raise SystemExit("the exporter ended without a word")
        url = "http://" + line.split(" http://", 1)[1].split("/", 1)[0]
        wait_until("the cards answer", lambda: asyncio.run(scraped(url, 1)), 30.0, 0.1)
        yield process.pid, url
    finally:
        process.kill()
        process.communicate()


def cost(library: Path, folder: Path, interval_ms: int, seconds: float, *, still: bool = False) -> tuple[float, float]:
    """CPU seconds of so long, and resident MiB at the end."""
    with exporter(library, folder, interval_ms, still=still) as (pid, _):
        time.sleep(3)
        before = cpu_seconds(pid)
        time.sleep(seconds)
        return cpu_seconds(pid) - before, memory(pid, "VmRSS")


async def scraped(url: str, count: int) -> list[float]:
    """Seconds of so many scrapes, ten at a time, plain text."""
    waits: list[float] = []

    async def scraper(session: aiohttp.ClientSession) -> None:
        while len(waits) < count:
            began = time.perf_counter()
            async with session.get(f"{url}/metrics") as answer:
                await answer.read()
                assert answer.status == 200
            waits.append(time.perf_counter() - began)

    async with aiohttp.ClientSession() as session:
        await asyncio.gather(*(scraper(session) for _ in range(min(SCRAPERS, count))))
    return waits


if __name__ == "__main__":
    main()
