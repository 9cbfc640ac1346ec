"""The console: boards of a large cluster, a world that moves, a log that is followed."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import resource
import signal
import statistics
import subprocess
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.connection import Connection as Pipe
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import uvloop
from tests.console.clusters import (
    EPOCH,
    cluster,
    gpu_node,
    large_cluster,
    living_cluster,
    pod,
    training_job,
)
from tests.console.worlds import StillCluster, still_world

from bench.laptop import COMMAND, PORTS
from bench.support.options import options
from bench.support.processes import cpu_seconds
from fairlead.apps.console_server import ConsoleServer
from fairlead.apps.server import bind_socket
from fairlead.console.pages.endpoints import BASE
from fairlead.edge.connection.connection import Connection
from fairlead.edge.connection.credentials import Credentials, IssuedCredentials
from fairlead.edge.kube.kube_api import KubeApi
from fairlead.edge.queries.job_files import KubeJobFiles
from fairlead.model.pod import ContainerState, ContainerStatus
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


async def console_boards_measure(
    snapshot: ClusterSnapshot, requests: int, pages: Sequence[str], is_changing: bool
) -> dict[str, float]:
    """Seconds to the first answer, p50 and p95 of list routes and GPU map, and the largest answer.

    p50 and p95 are in milliseconds, the size is in bytes.

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


def measure_console_boards() -> None:
    """The console over a large cluster: the time to the first answer, then that of list routes.

        python -m bench console_boards [--nodes 5000] [--requests 300] [--pages holders]

    Measured while nothing changes and while everything does. Over HTTP, one client. The ratio is
    to the same requests over a cluster of three nodes in the same run: what is left of it is the
    server's own time. `changing`: the cluster's version grows twice a second, so that every list
    is built anew all the time. `--pages holders` asks for who holds GPUs alone: 20,000 of 50,000
    pods; `--pages search` for names, ids and labels of all of them.
    """
    parser = options(measure_console_boards)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--requests", type=int, default=300)
    parser.add_argument("--pages", choices=tuple(ASKED), default="boards")
    args = parser.parse_args()
    pages = ASKED[args.pages]
    large = large_cluster(args.nodes)
    columns = {
        "3 nodes": uvloop.run(
            console_boards_measure(living_cluster(), args.requests, pages, is_changing=False)
        ),
        f"{args.nodes} nodes": uvloop.run(
            console_boards_measure(large, args.requests, pages, is_changing=False)
        ),
        f"{args.nodes} nodes, changing": uvloop.run(
            console_boards_measure(large, args.requests, pages, is_changing=True)
        ),
    }
    print(f"{'':36}" + "".join(f"{name:>24}" for name in columns))
    for row in next(iter(columns.values())):
        print(f"{row:36}" + "".join(f"{column[row]:>24.2f}" for column in columns.values()))
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{'peak memory of the process, MiB':36}{peak_mib:>24.0f}")


ROUTES = ("/overview", "/nodes", "/jobs", "/gpus/map", "/quota/usage")
START_SECONDS = 300
ANSWER_SECONDS = 120
PAUSE_SECONDS = 0.05


def measure_console_while_moving() -> None:
    """How long the console of a laptop takes to answer while its cluster changes.

    Measured from `/readyz` on.

        python -m bench console_while_moving [--scenarios default large] [--seconds 60]
            [--every 0.25]

    Aim: p95 of every route ≤ 300 ms in `large`. A laptop is a process of its own, and so is who
    asks: the routes in turn, one every `--every` seconds, whether or not the last one was
    answered. A wait counts from the moment when the question was due. The ratio is to the first
    scenario of the same run. CPU % is what the laptop used of one core meanwhile.
    """
    parser = options(measure_console_while_moving)
    parser.add_argument("--scenarios", nargs="+", default=["default", "large"])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--every", type=float, default=0.25)
    args = parser.parse_args()
    baseline: dict[str, float] = {}
    for scenario in args.scenarios:
        waits, busy = console_while_moving_measure(scenario, args.seconds, args.every)
        waits["all"] = [each for found in waits.values() for each in found]
        machine = f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
        print(f"\n{scenario}: {args.seconds:.0f} s from readyz on, CPU {busy:.0f} %, {machine}")
        print(
            f"{'route':<14}{'asked':>7}{'p50 ms':>10}{'p95 ms':>10}{'max ms':>10}{'p95 ratio':>11}"
        )
        for route, found in waits.items():
            p50, p95 = (
                statistics.median(found),
                statistics.quantiles(found, n=20, method="inclusive")[-1],
            )
            ratio = p95 / baseline.setdefault(route, p95)
            print(
                f"{route:<14}{len(found):>7}{p50 * 1e3:>10.0f}{p95 * 1e3:>10.0f}"
                f"{max(found) * 1e3:>10.0f}{ratio:>11.1f}",
                flush=True,
            )


def console_while_moving_measure(
    scenario: str, seconds: float, every: float
) -> tuple[dict[str, list[float]], float]:
    """Seconds that each route took, and the percentage of a core that the laptop used meanwhile."""
    with tempfile.TemporaryDirectory(prefix="fairlead-bench-") as directory:
        ready = Path(directory, "ready.json")
        command = [*COMMAND, "--scenario", scenario, "--ready-file", str(ready), *PORTS]
        environment = {**os.environ, "XDG_STATE_HOME": directory}
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment
        )
        try:
            deadline = time.monotonic() + START_SECONDS
            while not ready.exists():
                if process.poll() is not None or time.monotonic() > deadline:
                    raise SystemExit(f"the laptop is not ready; its status is {process.poll()}")
                time.sleep(PAUSE_SECONDS)
            before = cpu_seconds(process.pid)
            began = time.perf_counter()
            waits = asyncio.run(
                asked(json.loads(ready.read_text())["console"].rstrip("/"), seconds, every)
            )
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
            async with session.get(
                console + BASE + route, headers={"Accept-Encoding": "gzip"}
            ) as answer:
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


LINE = (
    b"step 123456 loss 1.2345 lr 0.00010000 tokens/s 45678.9 gpu 0 mem 70123 MiB grad 0.9876 "
    b"\xe8\xae\xad\xe7\xbb\x83\n"
)
TICK_SECONDS = 0.01
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n"
PATH = "/api/v1/jobs/team-a/pytorchjob/bert/logs?follow=true"


def write_log(pipe: Pipe, rate: int) -> None:
    """An API server that sends one log to every client, until it is stopped."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(HEAD)
        body = LINE * max(1, int(rate * TICK_SECONDS) // len(LINE))
        piece = f"{len(body):x}\r\n".encode() + body + b"\r\n"
        started, count = time.monotonic(), 0
        try:
            while True:
                due = int((time.monotonic() - started) * rate / len(body))
                for _ in range(due - count):
                    writer.write(piece)
                count = due
                await writer.drain()
                await asyncio.sleep(TICK_SECONDS)
        except (ConnectionError, RuntimeError):  # uvloop's word for a reader that has left
            writer.close()

    async def serve() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        pipe.send(server.sockets[0].getsockname()[1])
        await asyncio.Event().wait()

    uvloop.run(serve())


async def answer_questions(pipe: Pipe) -> None:
    """Answer each word from the pipe with the CPU seconds of this process so far."""
    while True:
        await asyncio.to_thread(pipe.recv)
        used = resource.getrusage(resource.RUSAGE_SELF)
        pipe.send(used.ru_utime + used.ru_stime)


def relay(pipe: Pipe, source: int) -> None:
    """The bytes alone."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        above, asking = await asyncio.open_connection("127.0.0.1", source)
        asking.write(b"GET / HTTP/1.1\r\n\r\n")
        try:
            while piece := await above.read(1 << 16):
                writer.write(piece)
                await writer.drain()
        except ConnectionError:
            asking.close()

    async def serve() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        pipe.send(server.sockets[0].getsockname()[1])
        await answer_questions(pipe)

    uvloop.run(serve())


def console(pipe: Pipe, source: int) -> None:
    async def serve() -> None:
        job, status = (
            training_job(),
            ContainerStatus("main", state=ContainerState.RUNNING, started_at=EPOCH),
        )
        own = msgspec.structs.replace(
            pod("bert-worker-0", "gpu-1", {"nvidia.com/gpu": 1}, job=job), statuses=(status,)
        )
        async with KubeApi(
            Connection(
                f"http://127.0.0.1:{source}", Credentials(IssuedCredentials, is_renewable=False)
            )
        ) as api:
            world = msgspec.structs.replace(
                still_world(cluster([gpu_node()], [own], [job])), job_files=KubeJobFiles(api)
            )
            sock = bind_socket("127.0.0.1", 0)
            serving = asyncio.create_task(ConsoleServer(world).service(sock).run())
            pipe.send(sock.getsockname()[1])
            await answer_questions(pipe)
            serving.cancel()

    uvloop.run(serve())


async def read(port: int, seconds: float) -> int:
    """Bytes read in `seconds`."""
    for _ in range(100):
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            break
        except ConnectionError:
            await asyncio.sleep(0.1)
    writer.write(f"GET {PATH} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    total, until = 0, time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        try:
            total += len(await asyncio.wait_for(reader.read(1 << 20), left))
        except TimeoutError:
            break
    writer.close()
    return total


def look(port: int, seconds: float) -> str:
    """What the page costs in Chromium.

    Its heap is collected and measured before the log and at its end.
    """
    from playwright.sync_api import sync_playwright
    from tests.browser.chromium import chromium_path

    frames = (
        "() => { window.seen = 0; const on = () => { window.seen += 1; requestAnimationFrame(on); "
        "}; requestAnimationFrame(on); }"
    )
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium_path(playwright), args=["--no-sandbox"]
        )
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        speaks = page.context.new_cdp_session(page)

        def heap() -> float:
            speaks.send("HeapProfiler.collectGarbage")
            return float(speaks.send("Runtime.getHeapUsage")["usedSize"]) / 1e6

        page.goto(f"http://127.0.0.1:{port}/jobs/team-a/pytorchjob/bert")
        page.get_by_test_id("job-tabs").wait_for()
        before = heap()
        page.get_by_role("tab", name="Logs").click()
        page.get_by_test_id("log").locator(".line").first.wait_for()
        page.evaluate(frames)
        page.wait_for_timeout(seconds * 1000)
        seen, nodes = page.evaluate(
            "() => [window.seen, document.body.querySelectorAll('*').length]"
        )
        state = page.get_by_test_id("log-state").inner_text()
        after = heap()
        browser.close()
    return (
        f"heap {before:.0f} -> {after:.0f} MB, {seen / seconds:.0f} frames/s, {nodes} DOM nodes; "
        f"the page shows: {state}"
    )


def measure_log_follow() -> None:
    """A followed log: what the console's server costs beside a bare relay, and what a browser pays.

        python -m bench log_follow [--seconds 60] [--mb 10] [--browser]

    One process writes a log at a steady rate, as an API server streams it; the console, or a relay
    of sockets on the same event loop, passes it on; this process reads. Compared is the CPU time
    of the one in the middle. `--browser`: Chromium reads instead, on the job's page; its heap
    before and after, frames and DOM nodes.
    """
    parser = options(measure_log_follow)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--mb", type=float, default=10.0)
    parser.add_argument("--browser", action="store_true")
    args = parser.parse_args()
    spawn = multiprocessing.get_context("spawn")

    def begun(target: Any, *more: Any) -> tuple[Any, Pipe, int]:
        parent, child = spawn.Pipe()
        process = spawn.Process(target=target, args=(child, *more), daemon=True)
        process.start()
        return process, parent, parent.recv()

    writer, _, source = begun(write_log, int(args.mb * 1e6))
    costs: dict[str, float] = {}
    for name, target in (("bytes alone", relay), ("console", console)):
        process, pipe, port = begun(target, source)
        asyncio.run(read(port, 1.0))
        pipe.send("?")
        before = pipe.recv()
        total = asyncio.run(read(port, args.seconds))
        pipe.send("?")
        costs[name] = (pipe.recv() - before) / (total / 1e6)
        print(
            f"{name:12} {total / 1e6 / args.seconds:6.1f} MB/s  {1000 * costs[name]:6.2f} "
            "CPU ms "
            "per MB"
        )
        if args.browser and name == "console":
            print(f"browser      {look(port, args.seconds)}")
        process.kill()
    print(f"console : bytes alone = {costs['console'] / costs['bytes alone']:.2f}")
    writer.kill()
