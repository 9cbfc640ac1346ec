"""How long the console of a laptop lets one wait while its world moves, from the first `/readyz` on.

    .venv/bin/python bench/console_while_moving.py [--scenarios default large] [--seconds 60] [--every 0.25]

Aim: p95 of every route ≤ 300 ms in `large`. A laptop is a process of its own, and so is who asks: the routes
in turn, one every `--every` seconds, whether or not the last one was answered. A wait counts from the moment
when the question was due. The ratio is to the first scenario of the same run. CPU % is what the laptop used
of one core meanwhile.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import aiohttp

sys.path.insert(0, str(Path(__file__).resolve().parent))

from fairlead.console.pages.endpoints import BASE
from laptop_start import COMMAND, PORTS, cpu_seconds

ROUTES = ("/overview", "/nodes", "/jobs", "/gpus/map", "/quota/usage")
START_SECONDS = 300
ANSWER_SECONDS = 120
PAUSE_SECONDS = 0.05


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenarios", nargs="+", default=["default", "large"])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--every", type=float, default=0.25)
    args = parser.parse_args()
    baseline: dict[str, float] = {}
    for scenario in args.scenarios:
        waits, busy = measure(scenario, args.seconds, args.every)
        waits["all"] = [each for found in waits.values() for each in found]
        machine = f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
        print(f"\n{scenario}: {args.seconds:.0f} s from readyz on, CPU {busy:.0f} %, {machine}")
        print(f"{'route':<14}{'asked':>7}{'p50 ms':>10}{'p95 ms':>10}{'max ms':>10}{'p95 ratio':>11}")
        for route, found in waits.items():
            p50, p95 = statistics.median(found), statistics.quantiles(found, n=20, method="inclusive")[-1]
            ratio = p95 / baseline.setdefault(route, p95)
            print(f"{route:<14}{len(found):>7}{p50 * 1e3:>10.0f}{p95 * 1e3:>10.0f}{max(found) * 1e3:>10.0f}{ratio:>11.1f}", flush=True)


def measure(scenario: str, seconds: float, every: float) -> tuple[dict[str, list[float]], float]:
    """Seconds that each route let one wait, and how much of a core the laptop used meanwhile, in percent."""
    with tempfile.TemporaryDirectory(prefix="fairlead-bench-") as directory:
        ready = Path(directory, "ready.json")
        command = [*COMMAND, "--scenario", scenario, "--ready-file", str(ready), *PORTS]
        environment = {**os.environ, "XDG_STATE_HOME": directory}
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
        try:
            deadline = time.monotonic() + START_SECONDS
            while not ready.exists():
                if process.poll() is not None or time.monotonic() > deadline:
                    raise SystemExit(f"the laptop is not ready; its status is {process.poll()}")
                time.sleep(PAUSE_SECONDS)
            before = cpu_seconds(process.pid)
            began = time.perf_counter()
            waits = asyncio.run(asked(json.loads(ready.read_text())["console"].rstrip("/"), seconds, every))
            return waits, 100 * (cpu_seconds(process.pid) - before) / (time.perf_counter() - began)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)


async def asked(console: str, seconds: float, every: float) -> dict[str, list[float]]:
    """Waits by route. Raises for an answer that is an error, or none at all."""
    waits: dict[str, list[float]] = defaultdict(list)
    timeout = aiohttp.ClientTimeout(total=ANSWER_SECONDS)
    async with aiohttp.ClientSession(timeout=timeout, auto_decompress=False) as session:

        async def ask(route: str, due: float) -> None:
            async with session.get(console + BASE + route, headers={"Accept-Encoding": "gzip"}) as answer:
                answer.raise_for_status()
                await answer.read()
            waits[route].append(time.perf_counter() - due)

        while True:
            async with session.get(console + "/readyz") as answer:
                if answer.status == 200:
                    break
            await asyncio.sleep(PAUSE_SECONDS)
        began = time.perf_counter()
        async with asyncio.TaskGroup() as questions:
            for number in range(int(seconds / every)):
                due = began + number * every
                await asyncio.sleep(max(0.0, due - time.perf_counter()))
                questions.create_task(ask(ROUTES[number % len(ROUTES)], due))
    return waits


if __name__ == "__main__":
    main()
