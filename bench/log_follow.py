"""A log that is followed: what the console's server costs beside a bare relay, and what a browser pays.

    .venv/bin/python bench/log_follow.py [--seconds 60] [--mb 10] [--browser]

One process writes a log at a steady rate, as an API server streams it; the console, or a relay of sockets on
the same event loop, passes it on; this process reads. Compared is the CPU time of the one in the middle.
`--browser`: Chromium reads instead, on the job's page; its heap before and after, frames and DOM nodes.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import resource
import sys
import time
from multiprocessing.connection import Connection as Pipe
from pathlib import Path
from typing import Any

import msgspec
import uvloop

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.console.clusters import EPOCH, cluster, gpu_node, pod, training_job
from tests.console.worlds import still_world

from fairlead.apps.console_server import ConsoleServer
from fairlead.apps.server import bind_socket
from fairlead.edge.connection.connection import Connection
from fairlead.edge.connection.credentials import Credentials, Issued
from fairlead.edge.kube.kube_api import KubeApi
from fairlead.edge.queries.job_files import KubeJobFiles
from fairlead.model.pod import ContainerState, ContainerStatus

LINE = b"step 123456 loss 1.2345 lr 0.00010000 tokens/s 45678.9 gpu 0 mem 70123 MiB grad 0.9876 \xe8\xae\xad\xe7\xbb\x83\n"
TICK_SECONDS = 0.01
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n"
PATH = "/api/v1/jobs/team-a/pytorchjob/bert/logs?follow=true"


def write_log(pipe: Pipe, rate: int) -> None:
    """An API server of one log, for whoever asks, until it is stopped."""

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
    """Whoever writes a word gets this process' CPU seconds so far."""
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
        job, status = training_job(), ContainerStatus("main", state=ContainerState.RUNNING, started_at=EPOCH)
        own = msgspec.structs.replace(pod("bert-worker-0", "gpu-1", {"nvidia.com/gpu": 1}, job=job), statuses=(status,))
        async with KubeApi(Connection(f"http://127.0.0.1:{source}", Credentials(Issued, is_renewable=False))) as api:
            world = msgspec.structs.replace(still_world(cluster([gpu_node()], [own], [job])), job_files=KubeJobFiles(api))
            sock = bind_socket("127.0.0.1", 0)
            serving = asyncio.create_task(ConsoleServer(world).service(sock).run())
            pipe.send(sock.getsockname()[1])
            await answer_questions(pipe)
            serving.cancel()

    uvloop.run(serve())


async def read(port: int, seconds: float) -> int:
    """Bytes read in so many seconds."""
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
    """What Chromium pays on the page. Its heap is collected and measured before the log and at its end."""
    from playwright.sync_api import sync_playwright
    from tests.browser.chromium import chromium_path

    frames = "() => { window.seen = 0; const on = () => { window.seen += 1; requestAnimationFrame(on); }; requestAnimationFrame(on); }"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium_path(playwright), args=["--no-sandbox"])
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
        seen, nodes = page.evaluate("() => [window.seen, document.querySelectorAll('*').length]")
        said = page.get_by_test_id("log-state").inner_text()
        after = heap()
        browser.close()
    return f"heap {before:.0f} -> {after:.0f} MB, {seen / seconds:.0f} frames/s, {nodes} DOM nodes; the page says: {said}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--mb", type=float, default=10.0)
    parser.add_argument("--browser", action="store_true")
    args = parser.parse_args()
    spawn = multiprocessing.get_context("spawn")

    def begun(target: Any, *more: Any) -> tuple[Any, Pipe, int]:
        ours, theirs = spawn.Pipe()
        process = spawn.Process(target=target, args=(theirs, *more), daemon=True)
        process.start()
        return process, ours, ours.recv()

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
        print(f"{name:12} {total / 1e6 / args.seconds:6.1f} MB/s  {1000 * costs[name]:6.2f} CPU ms per MB")
        if args.browser and name == "console":
            print(f"browser      {look(port, args.seconds)}")
        process.kill()
    print(f"console : bytes alone = {costs['console'] / costs['bytes alone']:.2f}")
    writer.kill()


if __name__ == "__main__":
    main()
