"""Pages of metrics: many exporters read by one process, and the cluster exporter's own page."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from tests.waiting import until, wait_until

from bench.support.options import options
from bench.support.processes import memory
from fairlead.apps.cluster_exporter import ClusterExporterSettings, cluster_families
from fairlead.apps.metrics_page import make_page
from fairlead.edge.files.clock import WallClock
from fairlead.edge.prometheus.exporter_pages import ExporterPages
from fairlead.edge.prometheus.one_page import read_page
from fairlead.model.devices.gpu import GpuHolder, GpuReading
from fairlead.model.jobs.job import Job, Role
from fairlead.model.metric import Family
from fairlead.model.node import Condition, Node
from fairlead.model.pod import Container, ContainerStatus, Owner, Pod
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.wire import names
from fairlead.wire.metrics.gpu_readings import parse_readings
from fairlead.wire.metrics.prom_text import parse_page, render_page

LOOKS_PER_SECOND = 2
PAGE_SECONDS = 60.0


def measure_exporter_pages() -> None:
    """How old the values of healthy nodes are while some exporters hang, and while none hangs.

        python -m bench exporter_pages [--pages 5000] [--hanging 100] [--interval 5] [--compat none]

    Aim: ≤ 1.2 times. A process of its own serves the pages on loopback: the page of a simulated
    node with eight cards (160 kB), under as many names as there are pages; those that hang take
    the connection and never answer. Ages are those of all readings of `latest`, looked at twice a
    second after everything has been read twice. CPU % is what the reader used of one core: where
    it uses all of one, pages come as fast as it reads them.
    """
    parser = options(measure_exporter_pages)
    parser.add_argument("--pages", type=int, default=5000)
    parser.add_argument("--hanging", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--interval", type=float, default=5.0)
    parser.add_argument(
        "--compat",
        default="dcgm,legacy",
        help="families of the page beside the native ones, or none",
    )
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
        print(
            f"{args.pages} pages of {page.stat().st_size / 1000:.0f} kB, {cards} cards "
            "each, read "
            f"every {args.interval:.0f} s"
        )
        server = subprocess.Popen(
            [sys.executable, "-m", "bench", "exporter_pages", "--serve", str(page)],
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert server.stdout is not None
            url = server.stdout.readline().strip()
            for _ in range(args.rounds):
                exporter_pages_compare(url, args, cards)
        finally:
            server.kill()
            server.wait()


def exporter_pages_compare(url: str, args: argparse.Namespace, cards: int) -> None:
    import uvloop

    first = 0.0
    for hanging in (0, args.hanging):
        ages, busy = uvloop.run(measure(url, args, hanging, cards))
        p50, p99 = (
            statistics.median(ages),
            statistics.quantiles(ages, n=100, method="inclusive")[-1],
        )
        first = first or p99
        machine = (
            f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores, RSS "
            f"{memory(os.getpid(), 'VmRSS'):.0f} MiB"
        )
        ages_text = (
            f"age p50 {p50:.2f} s, p99 {p99:.2f} s ({p99 / first:.2f} of the first), most "
            f"{max(ages):.2f} s"
        )
        print(f"{hanging:>5} hang: {ages_text}; CPU {busy:.0%}; {machine}", flush=True)


async def measure(
    url: str, args: argparse.Namespace, hanging: int, cards: int
) -> tuple[list[float], float]:
    """Ages of sound cards' values, and how much of a core the reader used."""
    urls = [
        f"{url}/{'hang' if number < hanging else 'node'}-{number}/metrics"
        for number in range(args.pages)
    ]
    stale_seconds = max(60.0, 6 * args.interval)
    pages, clock = (
        ExporterPages(
            urls, WallClock(), interval_seconds=args.interval, stale_after_seconds=stale_seconds
        ),
        WallClock(),
    )
    reading = asyncio.create_task(pages.run())
    sound = args.pages - hanging
    await until(
        lambda: len(pages.latest()) == cards * sound and pages.tally().reads >= 2 * sound, 600.0
    )
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
    """The page of the exporter of one simulated node."""
    argv = [
        sys.executable,
        "-m",
        "fairlead",
        "gpu-exporter",
        "--backend=sim",
        "--listen=127.0.0.1:0",
        f"--compat={compat}",
    ]
    process = subprocess.Popen(
        argv, env={**os.environ, "HOME": folder}, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        url = "http://" + line.split(" http://", 1)[1].split("/", 1)[0] + "/metrics"
        wait_until(
            "its cards answer", lambda: "\nfairlead_gpu_up{" in read_page(url), PAGE_SECONDS, 0.2
        )
        return read_page(url)
    finally:
        process.kill()
        process.wait()


async def serve(page: str) -> None:
    """`/node-N/metrics`: the page, for that node and its cards; `/hang-N/metrics` never answers."""
    (node,) = set(re.findall(r'node_name="([^"]+)"', page))
    parts = page.replace("GPU-", "GPU-NODE-").replace(node, "NODE").encode().split(b"NODE")

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            while head := await reader.readuntil(b"\r\n\r\n"):
                name = head.split(b"/", 2)[1]
                if name.startswith(b"hang"):
                    await reader.read()
                body = name.join(parts)
                writer.write(
                    b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n"
                    % len(body)
                    + body
                )
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=1024)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


GPUS_PER_NODE = 8
NOW = 1767600000.0
CHOSEN = ClusterExporterSettings(node="bench")


def big_cluster(nodes: int) -> ClusterSnapshot:
    """Every GPU held by a worker of a job of eight; every card has a reading."""
    ready, running = (
        (Condition("Ready", "True"),),
        (Condition("Created", "True", at=NOW), Condition("Running", "True", at=NOW)),
    )
    limits = {names.NVIDIA_GPU: 1}
    container = Container("pytorch", "train:1", {**limits, "cpu": 8000}, limits)
    status = (ContainerStatus("pytorch", True, 0, "running", started=True, started_at=NOW),)
    made_nodes, pods, jobs, gpus = [], [], [], []
    for number in range(nodes):
        node, job = f"gpu-node-{number:05d}", f"training-job-{number:05d}"
        namespace = f"team-{number % 50}"
        made_nodes.append(
            Node(
                node,
                capacity={names.NVIDIA_GPU: GPUS_PER_NODE},
                allocatable={names.NVIDIA_GPU: GPUS_PER_NODE},
                addresses=(
                    ("InternalIP", f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}"),
                ),
                conditions=ready,
                card_memory_mib=81920,
            )
        )
        jobs.append(
            Job(
                "pytorchjob",
                "PyTorchJob",
                "kubeflow.org/v1",
                namespace,
                job,
                uid=job,
                roles=(Role("worker", GPUS_PER_NODE, limits=limits),),
                conditions=running,
                created_at=NOW - 5000,
                started_at=NOW - 4000,
            )
        )
        owner, labels = (
            (Owner("PyTorchJob", job, job, True),),
            {names.LABEL_JOB_NAME: job, names.LABEL_REPLICA_TYPE: "worker"},
        )
        for index in range(GPUS_PER_NODE):
            pod = f"{job}-worker-{index}"
            pods.append(
                Pod(
                    namespace,
                    pod,
                    uid=pod,
                    labels=labels,
                    owners=owner,
                    node=node,
                    phase="Running",
                    containers=(container,),
                    statuses=status,
                    created_at=NOW - 4500,
                    started_at=NOW - 4000,
                )
            )
            seen = (GpuHolder(namespace, pod, "pytorch", "exclusive", 70000.0, 81920.0, 0.9),)
            gpus.append(
                GpuReading(
                    node,
                    index,
                    f"GPU-{number:05d}-{index}",
                    "NVIDIA A100",
                    81920.0,
                    70123.0,
                    (number * 7 + index) % 100 / 100,
                    holders=seen,
                )
            )
    return ClusterSnapshot(nodes=tuple(made_nodes), pods=tuple(pods), jobs=tuple(jobs)).with_gpus(
        gpus
    )


def run_fairlead(nodes: int, runs: int) -> dict[str, float]:
    snapshot = big_cluster(nodes)
    held = peak_mib()
    pages, renders, page = [], [], make_page(())
    for turn in range(runs):
        fresh = snapshot.without(())  # a new value, as after every change: no index is warm
        pages.append(
            seconds(
                lambda fresh=fresh: make_page(render_page(cluster_families(fresh, NOW, CHOSEN)))
            )
        )
        if turn == 0:
            page = make_page(render_page(cluster_families(fresh, NOW, CHOSEN)))
    peak = peak_mib()
    families = list(cluster_families(snapshot, NOW, CHOSEN))
    samples = sum(value is not None for family in families for value in family.values)
    renders = [
        seconds(lambda: sum(len(piece) for piece in render_page(families))) for _ in range(runs)
    ]
    return {
        "page": statistics.median(pages),
        "render": statistics.median(renders),
        "samples": samples,
        "mb": page.size / 1e6,
        "gzip_mb": len(page.gzipped) / 1e6,
        "held": held,
        "peak": peak,
    }


def run_peer(nodes: int, runs: int) -> dict[str, float]:
    """prometheus_client: the same samples, already in its own objects.

    Its text, then zlib as its server does.
    """
    from gzip import compress

    from prometheus_client import CollectorRegistry, generate_latest
    from prometheus_client.core import Metric

    def converted(family: Family) -> Metric:
        name, labels = family.metric.name, family.metric.labels
        metric = Metric(name.removesuffix("_total"), family.metric.help, family.metric.type)
        for key, value in zip(family.keys, family.values, strict=True):
            if value is not None:
                metric.add_sample(name, dict(zip(labels, key, strict=True)), value)
        return metric

    class Collector:
        def __init__(self, metrics: list[Metric]) -> None:
            self.metrics = metrics

        def collect(self) -> Iterator[Metric]:
            return iter(self.metrics)

    registry = CollectorRegistry()
    registry.register(
        Collector(
            [converted(family) for family in cluster_families(big_cluster(nodes), NOW, CHOSEN)]
        )
    )  # type: ignore[arg-type]
    text = generate_latest(registry)
    return {
        "render": statistics.median(
            seconds(lambda: generate_latest(registry)) for _ in range(max(1, runs // 2))
        ),
        "gzip": seconds(lambda: compress(text)),
        "peak": peak_mib(),
    }


def seconds(work: Callable[[], object]) -> float:
    """CPU seconds of `work`, which is one busy thread.

    Wall time on a shared machine depends on its neighbours.
    """
    began = time.process_time()
    work()
    return time.process_time() - began


def peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def child(who: str, nodes: int, runs: int) -> dict[str, float]:
    command = [
        sys.executable,
        "-m",
        "bench",
        "cluster_exporter_page",
        "--client",
        who,
        f"--nodes={nodes}",
        f"--runs={runs}",
    ]
    answer: dict[str, float] = json.loads(
        subprocess.run(command, check=True, capture_output=True, text=True).stdout
    )
    return answer


def cluster_exporter_page_compare(nodes: int, runs: int) -> None:
    own, peer = child("fairlead", nodes, runs), child("peer", nodes, runs)
    print(
        f"\n{nodes:,} nodes, {nodes * GPUS_PER_NODE:,} GPUs, {nodes:,} jobs: "
        f"{own['samples']:,.0f} samples, {own['mb']:.0f} MB of text"
    )
    print(f"{'':44}{'CPU s':>9}{'peak MiB':>10}")
    print(
        f"{'fairlead: whole page, from a new snapshot':44}{own['page']:>9.2f}{own['peak']:>10.0f}"
    )
    print(f"{'fairlead: render alone':44}{own['render']:>9.2f}")
    print(f"{'prometheus_client: render alone':44}{peer['render']:>9.2f}{peer['peak']:>10.0f}")
    print(f"{'prometheus_client: gzip':44}{peer['gzip']:>9.2f}")
    print(f"\nprometheus_client / fairlead, render: {peer['render'] / own['render']:.1f}x")
    print(
        f"the cluster itself holds {own['held']:.0f} MiB of the peak; gzip level 1 makes "
        f"{own['gzip_mb']:.1f} MB"
    )


def measure_cluster_exporter_page() -> None:
    """The cluster exporter's page at 5,000 nodes, 40,000 GPUs, 5,000 jobs.

    By Fairlead, and by prometheus_client.

        python -m bench cluster_exporter_page [--nodes 5000] [--runs 5]

    `page` is everything from a new snapshot to bytes and gzip: occupancy, jobs, families, text.
    `render` is families to text alone, which is what prometheus_client's `generate_latest` does
    with the same samples. Peak memory is of a process that holds the cluster and has made the page
    `--runs` times.
    """
    parser = options(measure_cluster_exporter_page)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--client", choices=("fairlead", "peer"), help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.client:
        print(
            json.dumps(
                (run_peer if chosen.client == "peer" else run_fairlead)(chosen.nodes, chosen.runs)
            )
        )
    else:
        cluster_exporter_page_compare(chosen.nodes, chosen.runs)
