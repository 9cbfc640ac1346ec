"""Rights in the console: what a researcher's picture costs, and lists of many researchers."""

from __future__ import annotations

import asyncio
import os
import random
import statistics
import time
import timeit
import tracemalloc
from contextlib import suppress
from typing import Final

import aiohttp
import uvloop
from starlette.requests import Request
from tests.console.clusters import EPOCH, large_cluster
from tests.console.worlds import StillCluster, still_world

from bench.support.options import options
from fairlead.apps.console_server import ConsoleServer
from fairlead.apps.server import bind_socket
from fairlead.collector import quiet_collector
from fairlead.console.boards.restricted.board import RestrictedBoard, SharedBoard
from fairlead.console.pages.endpoints import BASE
from fairlead.model.people.permission import ConsoleResource, ConsoleVerb
from fairlead.model.people.reach import Reach
from fairlead.model.people.rows import UserRole
from fairlead.model.people.subject import LOCAL_ADMIN, Subject
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.rules.people.may import may
from fairlead.rules.people.restricted import restricted

TEAMS: Final = 40
PARTS: Final = ("jobs", "jobs_sentence", "overview", "nodes", "quota", "quota_sentence", "waiting")
"""What a researcher's open pages are made of."""
LISTS: Final = (
    "/nodes",
    "/nodes?sort=-gpuUtilPercent",
    "/jobs",
    "/jobs?job_status=running&sort=-gpusRequested",
    "/gpus?status=allocated",
    "/holders",
    "/quota/usage",
    "/overview",
)
WHO: Final = "x-researcher"


def subject_number(number: int) -> Subject:
    """A researcher in one to three of the namespaces."""
    names = {f"team-{(number * 7 + k) % TEAMS:02d}" for k in range(1 + number % 3)}
    return Subject(f"user-{number}", UserRole.RESEARCHER, f"user-{number}", frozenset(names))


class Numbered:
    """`Subjects` by a header; without it the administrator."""

    async def of(self, request: Request) -> Subject:
        number = request.headers.get(WHO)
        return LOCAL_ADMIN if number is None else subject_number(int(number))


def made(whole: SharedBoard, number: int) -> RestrictedBoard:
    subject = subject_number(number)
    reach = Reach(subject.namespaces, subject.leaves)
    board = RestrictedBoard(whole, restricted(whole.snapshot, reach), reach, EPOCH)
    for part in PARTS:
        getattr(board, part)
    return board


def measure_pictures() -> None:
    """What the picture of one more researcher costs, in time and memory, and one call of `may()`.

        python -m bench pictures [--nodes 5000] [--jobs 2000] [--researchers 60]

    Aim: at most 5 ms and 0.2 MiB a picture, less than 2 µs a call. A picture is made with the
    parts of the open boards (jobs, overview, nodes, quota, waiting). What all share of the whole
    board state is made before, and its time is printed beside.
    """
    parser = options(measure_pictures)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--jobs", type=int, default=2000)
    parser.add_argument("--researchers", type=int, default=60)
    args = parser.parse_args()
    whole = SharedBoard(large_cluster(args.nodes, args.jobs), EPOCH)
    started = time.process_time()
    for part in PARTS:
        getattr(whole, part)
    print(f"whole board state: {time.process_time() - started:.2f} CPU s")
    started = time.process_time()
    made(whole, 0)
    print(f"first picture, with what pictures share: {time.process_time() - started:.3f} CPU s")
    times = []
    for number in range(args.researchers):
        started = time.process_time()
        made(whole, number)
        times.append((time.process_time() - started) * 1000)
    times.sort()
    print(
        f"one more picture: median {statistics.median(times):.2f} ms, "
        f"p95 {times[int(len(times) * 0.95)]:.2f} ms, largest {times[-1]:.2f} ms of CPU"
    )
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    kept = [made(whole, number) for number in range(args.researchers)]
    size = (tracemalloc.get_traced_memory()[0] - before) / len(kept) / (1 << 20)
    tracemalloc.stop()
    print(f"one more picture: {size:.3f} MiB")
    bob, calls = subject_number(0), 200_000
    seconds = timeit.timeit(
        lambda: may(bob, ConsoleVerb.GET, ConsoleResource.JOBS, "team-00"), number=calls
    )
    print(f"may(): {seconds / calls * 1e6:.2f} µs")


async def lists_measure(
    snapshot: ClusterSnapshot, browsers: int, researchers: int, seconds: float, every: float
) -> list[float]:
    """Milliseconds of each answer. `researchers` 0: all browsers are the administrator's."""
    world = still_world(snapshot)
    sock = bind_socket("127.0.0.1", 0)
    server = ConsoleServer(world, subjects=Numbered())
    serving = asyncio.create_task(server.service(sock).run())
    base = f"http://127.0.0.1:{sock.getsockname()[1]}{BASE}"
    found: list[float] = []
    async with aiohttp.ClientSession(
        auto_decompress=False, connector=aiohttp.TCPConnector(limit=0)
    ) as session:

        async def browse(number: int) -> None:
            chance = random.Random(number)
            headers = {"Accept-Encoding": "gzip"}
            if researchers:
                headers[WHO] = str(number % researchers)
            await asyncio.sleep(chance.random() * every)
            end = time.perf_counter() + seconds
            while time.perf_counter() < end:
                started = time.perf_counter()
                async with session.get(base + chance.choice(LISTS), headers=headers) as answer:
                    answer.raise_for_status()
                    await answer.read()
                found.append((time.perf_counter() - started) * 1000)
                await asyncio.sleep(every * (0.5 + chance.random()))

        async def change() -> None:
            while True:
                assert isinstance(world.cluster, StillCluster)
                world.cluster.show(world.cluster.snapshot())
                await asyncio.sleep(2)

        warm = [{WHO: str(number)} for number in range(researchers)] or [{}]
        for headers in warm:
            for page in LISTS:
                async with session.get(base + page, headers=headers) as answer:
                    await answer.read()
        changing = asyncio.create_task(change())
        await asyncio.gather(*(browse(number) for number in range(browsers)))
        changing.cancel()
    serving.cancel()
    with suppress(asyncio.CancelledError):
        await serving
    return sorted(found)


def measure_researchers() -> None:
    """List routes asked by many browsers of researchers, and the same by administrators.

        python -m bench researchers [--nodes 5000] [--jobs 2000] [--browsers 100]
            [--researchers 60] [--seconds 20] [--every 5] [--rounds 3]

    Aim: p95 < 200 ms, and at most 1.3 times the administrators'. Each browser asks for a list
    every `--every` seconds, after a random pause; the cluster changes every two seconds. Rounds of
    the two take turns, because other work on the machine is never the same. CPU time is that of
    the process, with its browsers.
    """
    parser = options(measure_researchers)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--jobs", type=int, default=2000)
    parser.add_argument("--browsers", type=int, default=100)
    parser.add_argument("--researchers", type=int, default=60)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--every", type=float, default=5.0)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    with quiet_collector(is_first=True):  # as after the first list of a real cluster
        snapshot = large_cluster(args.nodes, args.jobs)
    kinds = {"administrators": 0, "researchers": args.researchers}
    found: dict[str, list[float]] = {name: [] for name in kinds}
    for turn in range(args.rounds):
        p95s = []
        for name, researchers in kinds.items():
            started = time.process_time()
            times = uvloop.run(
                lists_measure(snapshot, args.browsers, researchers, args.seconds, args.every)
            )
            print_times(f"{turn + 1} {name}", times, time.process_time() - started)
            found[name] += times
            p95s.append(p95_of(times))
        print(f"p95 ratio {p95s[1] / p95s[0]:.2f}")
    for name, times in found.items():
        print_times(name, times)
    ratio = p95_of(found["researchers"]) / p95_of(found["administrators"])
    print(f"p95 ratio of all rounds {ratio:.2f}; load {os.getloadavg()[0]:.1f}")


def p95_of(times: list[float]) -> float:
    return sorted(times)[int(len(times) * 0.95)]


def print_times(name: str, times: list[float], cpu: float | None = None) -> None:
    print(
        f"{name:<18}{len(times):>6} answers, p50 {statistics.median(times):7.1f} ms, "
        f"p95 {p95_of(times):7.1f} ms, largest {max(times):7.1f} ms"
        + (f", {cpu:.1f} CPU s" if cpu is not None else "")
    )
