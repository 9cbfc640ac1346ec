"""The simulated API server beside the real one, asked by the leanest client."""

from __future__ import annotations

import argparse
import asyncio
import os
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httptools
import msgspec
import uvloop
from tests.kube.addresses import address_beyond_loopback, free_port
from tests.kube.control_plane import ControlPlane

from bench.support.options import options
from bench.support.pod_source import pod
from bench.support.processes import cpu_seconds, memory


class LeanClient(asyncio.Protocol):
    """`request` for one answer at a time; `watch` for a stream
    whose lines are counted in `lines`.
    """

    def __init__(self, host: str, authorization: str) -> None:
        self._head = f"Host: {host}\r\nAccept: application/json\r\n" + (
            f"Authorization: {authorization}\r\n" if authorization else ""
        )
        self._answer: asyncio.Future[None] | None = None
        self.lines = 0
        self.news = asyncio.Event()

    @classmethod
    async def open(cls, kubeconfig: Path) -> LeanClient:
        """A connection to the kubeconfig's server, with its token or client certificate."""
        server, authorization, context = access(kubeconfig)
        host, _, port = server.removeprefix("https://").partition(":")
        loop = asyncio.get_running_loop()
        _, client = await loop.create_connection(
            lambda: cls(host, authorization), host, int(port), ssl=context
        )
        return client

    async def request(
        self, method: str, path: str, body: bytes = b"", content_type: str = "application/json"
    ) -> bytes:
        """The answer's body; AssertionError for anything but a 2xx."""
        self._send(method, path, body, content_type)
        await self._answer  # type: ignore[misc]
        status = self._parser.get_status_code()
        whole = b"".join(self._parts)
        assert 200 <= status < 300, (status, whole[:500])
        return whole

    def watch(self, path: str) -> None:
        self._send("GET", path, b"", "")

    def close(self) -> None:
        self._transport.close()

    def _send(self, method: str, path: str, body: bytes, content_type: str) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._parts: list[bytes] = []
        self._answer = asyncio.get_running_loop().create_future()
        body_headers = (
            f"Content-Type: {content_type}\r\nContent-Length: {len(body)}\r\n" if body else ""
        )
        self._transport.write(
            f"{method} {path} HTTP/1.1\r\n{self._head}{body_headers}\r\n".encode() + body
        )

    # asyncio.Protocol

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def connection_lost(self, reason: Exception | None) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(
                reason or ConnectionError("the server closed the connection")
            )
            self._answer.exception()  # a watch that is closed on purpose has no pending request

    # httptools

    def on_body(self, part: bytes) -> None:
        self._parts.append(part)
        self.lines += part.count(b"\n")
        self.news.set()

    def on_message_complete(self) -> None:
        assert self._answer is not None
        if not self._answer.done():
            self._answer.set_result(None)


def access(kubeconfig: Path) -> tuple[str, str, ssl.SSLContext]:
    """Server, `Authorization` header and TLS context of the current user."""
    from fairlead.edge.connection.connection import make_ssl_context
    from fairlead.edge.connection.kubeconfig import find_connection

    connection = find_connection(str(kubeconfig))
    assert connection is not None
    issued = connection.credentials.current()
    return (
        connection.server,
        issued.authorization or "",
        make_ssl_context(connection, issued.certificate),
    )


NAMESPACES = [f"team-{number:02}" for number in range(40)]
PODS = "/api/v1/pods"
PAGE = 500
AT_ONCE = 8
EMPTY_WORLD = 'title = "Empty"\n\n[[node_pools]]\nname = "cpu"\ncpu = 4\nmemory = "8Gi"\n'
MERGE_PATCH = "application/merge-patch+json"


class Side:
    """One API server: how to reach it, and the processes that it is."""

    def __init__(self, name: str, kubeconfig: Path, pids: list[int]) -> None:
        self.name = name
        self.kubeconfig = kubeconfig
        self.pids = pids
        self.best: dict[str, tuple[float, float]] = {}

    def cpu(self) -> float:
        return sum(cpu_seconds(pid) for pid in self.pids)

    def mib(self) -> float:
        return sum(memory(pid, "VmRSS") for pid in self.pids)

    async def measure(self, what: str, act: Callable[[], Awaitable[None]]) -> None:
        """Keep the best (wall seconds, CPU seconds of the servers)."""
        started, cpu = time.perf_counter(), self.cpu()
        await act()
        seconds, cpu = time.perf_counter() - started, self.cpu() - cpu
        before = self.best.get(what, (seconds, cpu))
        self.best[what] = (min(seconds, before[0]), min(cpu, before[1]))
        print(f"{what}, {self.name}: {seconds:.2f} s, {cpu:.2f} CPU s", file=sys.stderr, flush=True)


def measure_api_server() -> None:
    """The simulated API server against kube-apiserver with etcd: one lean client, sides take turns.

        python -m bench api_server [--pods 10000] [--created 5000] [--events 5000] [--watchers 10]
            [--rounds 3]

    Aims: at most twice the real one's time, at most half its memory. Needs the programs that
    `tools/build_kube.py` builds. Pods name a scheduler that does not exist and there are no
    controllers, so nothing but the API servers works. Every number is the best of `rounds`;
    `server CPU s` is what kube-apiserver and etcd, or our one process, used meanwhile.
    Fairlead's uses one core at most, the real one all that there are.
    """
    parser = options(measure_api_server)
    parser.add_argument("--pods", type=int, default=10_000)
    parser.add_argument("--created", type=int, default=5_000)
    parser.add_argument("--events", type=int, default=5_000)
    parser.add_argument("--watchers", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="fairlead-bench-") as directory,
        both(Path(directory)) as sides,
    ):
        uvloop.run(compare(sides, args))
    report(sides)


async def compare(sides: list[Side], args: argparse.Namespace) -> None:
    for side in sides:
        clients = [await LeanClient.open(side.kubeconfig) for _ in range(AT_ONCE)]
        for namespace in NAMESPACES:
            await clients[0].request(
                "POST", "/api/v1/namespaces", encoded({"metadata": {"name": namespace}})
            )
            account = encoded({"metadata": {"name": "default"}})
            try:
                await clients[0].request(
                    "POST", f"/api/v1/namespaces/{namespace}/serviceaccounts", account
                )
            except AssertionError as error:  # Fairlead's server has already made it
                assert "AlreadyExists" in str(error), error
        await create(clients, range(args.pods))
        for client in clients:
            client.close()
    for turn in range(args.rounds):
        for side in sides if turn % 2 == 0 else reversed(sides):
            await one_round(side, turn, args)
    for side in sides:
        side.best["MiB"] = (side.mib(), 0.0)


async def one_round(side: Side, turn: int, args: argparse.Namespace) -> None:
    clients = [await LeanClient.open(side.kubeconfig) for _ in range(AT_ONCE)]
    await side.measure(f"list {args.pods:,} pods", lambda: list_whole(clients[0], args.pods))
    await side.measure(
        f"list {args.pods:,} pods, {PAGE} a page", lambda: list_pages(clients[0], args.pods)
    )
    new = range(args.pods, args.pods + args.created)
    await side.measure(
        f"create {args.created:,} pods, one client", lambda: create(clients[:1], new)
    )
    await delete(clients, new)
    await side.measure(
        f"create {args.created:,} pods, {AT_ONCE} clients", lambda: create(clients, new)
    )
    await delete(clients, new)
    watchers = [await LeanClient.open(side.kubeconfig) for _ in range(args.watchers)]
    version = msgspec.json.decode(await clients[0].request("GET", f"{PODS}?limit=1"))["metadata"][
        "resourceVersion"
    ]
    for watcher in watchers:
        watcher.watch(f"{PODS}?watch=1&resourceVersion={version}")
    events = f"{args.events:,} changes to {args.watchers} watchers"
    await side.measure(events, lambda: watch(clients, watchers, args.events, turn))
    for client in (*clients, *watchers):
        client.close()


def encoded(document: object) -> bytes:
    return msgspec.json.encode(document)


def path_of(number: int) -> str:
    metadata = pod(number)["metadata"]
    return f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"


def manifest(number: int) -> bytes:
    """What a controller would send: the pod of `pod_source` without what servers write.

    It is for a scheduler that does not exist.
    """
    whole = pod(number)
    metadata = {
        key: whole["metadata"][key] for key in ("name", "namespace", "labels", "annotations")
    }
    spec = {
        key: value
        for key, value in whole["spec"].items()
        if key not in ("nodeName", "priority", "tolerations", "preemptionPolicy")
    }
    return encoded(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": metadata,
            "spec": {**spec, "schedulerName": "nobody"},
        }
    )


async def at_once(clients: list[LeanClient], requests: list[tuple[str, str, bytes, str]]) -> None:
    """All requests, one after another on each client."""
    waiting = iter(requests)

    async def work(client: LeanClient) -> None:
        for method, path, body, content_type in waiting:
            await client.request(method, path, body, content_type)

    await asyncio.gather(*(work(client) for client in clients))


async def create(clients: list[LeanClient], numbers: range) -> None:
    await at_once(
        clients,
        [("POST", path_of(n).rpartition("/")[0], manifest(n), "application/json") for n in numbers],
    )


async def delete(clients: list[LeanClient], numbers: range) -> None:
    options = encoded({"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0})
    await at_once(clients, [("DELETE", path_of(n), options, "application/json") for n in numbers])


async def list_whole(client: LeanClient, expected: int) -> None:
    body = await client.request("GET", PODS)
    assert len(msgspec.json.decode(body, type=_List).items) == expected


async def list_pages(client: LeanClient, expected: int) -> None:
    count, token = 0, ""
    while True:
        page = msgspec.json.decode(
            await client.request("GET", f"{PODS}?limit={PAGE}&continue={token}"), type=_List
        )
        count, token = count + len(page.items), page.metadata.token
        if not token:
            break
    assert count == expected


class _Metadata(msgspec.Struct):
    token: str = msgspec.field(default="", name="continue")


class _List(msgspec.Struct):
    metadata: _Metadata
    items: list[msgspec.Raw]


async def watch(
    clients: list[LeanClient], watchers: list[LeanClient], events: int, turn: int
) -> None:
    patch = encoded({"metadata": {"annotations": {"turn": str(turn)}}})
    await at_once(
        clients, [("PATCH", path_of(number), patch, MERGE_PATCH) for number in range(events)]
    )
    for watcher in watchers:
        while watcher.lines < events:
            watcher.news.clear()
            await asyncio.wait_for(watcher.news.wait(), 60)
        assert watcher.lines == events


# --- the two sides --------------------------------------------------------------------------------


@contextmanager
def both(folder: Path) -> Iterator[list[Side]]:
    (folder / "logs").mkdir()
    with address_beyond_loopback() as address, simulated(folder) as simulated_side:
        plane = ControlPlane(folder, folder / "logs", address)
        try:
            for name in ("etcd", "kube-apiserver"):
                plane.start_component(name)
            pids = [plane.components[name].pid for name in ("etcd", "kube-apiserver")]
            yield [Side("real", plane.kubeconfig, pids), simulated_side]
        finally:
            plane.stop()


@contextmanager
def simulated(folder: Path) -> Iterator[Side]:
    scenario, kubeconfig, port = (
        folder / "nobody.toml",
        folder / "simulated.kubeconfig",
        free_port(),
    )
    scenario.write_text(EMPTY_WORLD)
    command = [
        sys.executable,
        "-m",
        "fairlead",
        "api-server",
        "--listen",
        str(port),
        "--scenario",
        str(scenario),
        "--kubeconfig",
    ]
    process = subprocess.Popen(
        [*command, str(kubeconfig)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    try:
        assert process.stderr is not None
        process.stderr.readline()  # "simulated cluster on …" comes when it listens
        yield Side("simulated", kubeconfig, [process.pid])
    finally:
        process.terminate()
        process.wait(30)


def report(sides: list[Side]) -> None:
    real, simulated_side = sides
    rounds = f"best of the rounds, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    print(
        f"\n{rounds}\n{'':36}{'real s':>10}{'CPU s':>10}{'sim s':>10}{'CPU s':>10}"
        f"{'ratio':>8}{'CPU':>8}  aim"
    )
    for what, (real_seconds, their_cpu) in real.best.items():
        seconds, cpu = simulated_side.best[what]
        if what == "MiB":
            print(
                f"{'memory, MiB':36}{real_seconds:>10.0f}{'':10}{seconds:>10.0f}{'':10}"
                f"{seconds / real_seconds:>8.2f}{'':8}  <= 0.5"
            )
        else:
            row = f"{what:36}{real_seconds:>10.2f}{their_cpu:>10.2f}{seconds:>10.2f}{cpu:>10.2f}"
            print(f"{row}{seconds / real_seconds:>8.2f}{cpu / max(their_cpu, 0.01):>8.2f}  <= 2")
