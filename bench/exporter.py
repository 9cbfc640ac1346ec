"""The GPU exporter as a process, on a library that plays a driver with eight cards."""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, Final, NamedTuple

import aiohttp
import grpc
import pynvml
from grpc import aio
from tests.apps.fakes import FakeCluster
from tests.console.clusters import cluster, gpu_node
from tests.edge.kubelet.wire_bytes import packed
from tests.kube.addresses import free_port
from tests.nvml.stub import StubState, build_stub, uuid
from tests.nvml.stub import uuid as card_uuid
from tests.waiting import wait_until

from bench.support.options import options
from bench.support.processes import cpu_seconds, memory
from fairlead.apps.cluster_exporter import ClusterExporter, ClusterExporterSettings
from fairlead.apps.pod_map import PodMap
from fairlead.apps.server import bind_socket
from fairlead.edge.files.clock import WallClock
from fairlead.edge.kubelet.pod_resources import PodResources
from fairlead.edge.nvml.cards import shown_card
from fairlead.edge.nvml.library import close_library, open_library
from fairlead.edge.nvml.readings import CardReader
from fairlead.edge.prometheus.exporter_pages import ExporterPages
from fairlead.model.devices.device import DeviceSample
from fairlead.model.devices.kubelet import GivenShare

CARDS = 8
SCRAPERS = 10
IDLE_MS = 3_600_000
LINES = 100_000
USUAL = (Path(__file__).parents[1] / "src/fairlead/wire/metrics/default-counters.csv").read_text(
    encoding="utf-8"
)
AGAIN = "DCGM_FI_DEV_GPU_UTIL, gauge, GPU utilization (in %).\n"


def measure_gpu_exporter() -> None:
    """The GPU exporter as a process; a library plays a driver with eight cards and answers at once.

        python -m bench gpu_exporter [--seconds 30] [--interval 1000] [--scrapes 400]

    CPU and memory of a beat of `--interval` milliseconds, against the same process with the longest
    beat there is (its idling). Then what scrapers wait, ten at a time, against the same while a
    call of one card hangs, and while a counters file of 100,000 lines is read anew every second.
    The library's own cost (it reads a table in memory) is in the figures; a real driver's would be
    more.
    """
    parser = options(measure_gpu_exporter)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--interval", type=int, default=1000)
    parser.add_argument("--scrapes", type=int, default=400)
    args = parser.parse_args()
    with played_driver() as (folder, library, state):
        idle, _ = gpu_exporter_cost(library, folder, IDLE_MS, args.seconds, still=True)
        busy, held = gpu_exporter_cost(library, folder, args.interval, args.seconds, still=True)
        beat = (busy - idle) * args.interval / args.seconds / 1000
        print(
            f"{CARDS} cards, a beat each {args.interval} ms: {busy / args.seconds:.2%} of "
            "a core, "
            f"idle {idle / args.seconds:.2%}"
        )
        print(
            f"one beat {1000 * beat:.1f} ms of CPU, so {beat / 5:.2%} of a core at 5 s; RSS "
            f"{held:.0f} MiB"
        )
        with exporter(library, folder, 1000) as (_, url):
            alone = asyncio.run(scraped(url, args.scrapes))
            state.say({"hang.nvmlDeviceGetUtilizationRates.3": 1})
            wait_until("it hangs", lambda: "hangs" in state.calls(), 30.0, 0.05)
            hanging = asyncio.run(scraped(url, args.scrapes))
            state.say({"hang.nvmlDeviceGetUtilizationRates.3": None})
        counters = folder / "counters.csv"
        counters.write_text(USUAL, encoding="utf-8")
        with (
            exporter(library, folder, 1000, flags=["-f", str(counters)]) as (_, url),
            rewritten(counters),
        ):
            reloading = asyncio.run(scraped(url, args.scrapes))
        for name, waits in (
            ("no call hangs", alone),
            ("one call hangs", hanging),
            (f"{LINES} counters read anew and anew", reloading),
        ):
            p50, p99 = (
                statistics.median(waits),
                statistics.quantiles(waits, n=100, method="inclusive")[-1],
            )
            ratio = p99 / statistics.quantiles(alone, n=100, method="inclusive")[-1]
            print(
                f"/metrics, {SCRAPERS} scrapers, {name}: p50 {1000 * p50:.1f} ms, p99 "
                f"{1000 * p99:.1f} ms ({ratio:.2f} of the first)"
            )


@contextmanager
def played_driver() -> Iterator[tuple[Path, Path, StubState]]:
    """A new folder with a library that plays eight cards of the newest kind, and their values."""
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
            written.write_text(
                USUAL + "".join(f"# {turn} {line}\n{AGAIN}" for line in range(LINES // 2)),
                encoding="utf-8",
            )
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
def exporter(
    library: Path, folder: Path, interval_ms: int, *, still: bool = False, flags: Sequence[str] = ()
) -> Iterator[tuple[int, str]]:
    """Its pid and address, once its cards have answered. `still`:
    the library reads its table once.
    """
    argv = [
        sys.executable,
        "-m",
        "fairlead",
        "gpu-exporter",
        "--listen=127.0.0.1:0",
        f"--nvml-library={library}",
        "--kmsg=off",
    ]
    env = {
        **os.environ,
        "STUB_NVML": str(folder),
        "HOME": str(folder),
        **({"STUB_NVML_STILL": "1"} if still else {}),
    }
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


def gpu_exporter_cost(
    library: Path, folder: Path, interval_ms: int, seconds: float, *, still: bool = False
) -> tuple[float, float]:
    """CPU seconds used in `seconds`, and resident MiB at the end."""
    with exporter(library, folder, interval_ms, still=still) as (pid, _):
        time.sleep(3)
        before = cpu_seconds(pid)
        time.sleep(seconds)
        return cpu_seconds(pid) - before, memory(pid, "VmRSS")


async def scraped(url: str, count: int) -> list[float]:
    """Seconds of each of `count` scrapes, ten at a time, plain text."""
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


BEATS = 300
PROFILED = frozenset(
    f"DCGM_FI_PROF_{name}"
    for name in (
        "GR_ENGINE_ACTIVE",
        "PIPE_TENSOR_ACTIVE",
        "DRAM_ACTIVE",
        "PCIE_TX_BYTES",
        "PCIE_RX_BYTES",
    )
)
"""What dcgm-exporter's default counters ask of GPM."""
Call = tuple[Callable[..., Any], tuple[Any, ...]]


def measure_gpu_exporter_peer() -> None:
    """The GPU exporter beside nvitop-exporter on one library with eight cards, and its bare calls.

        python3 -m venv /tmp/peer && /tmp/peer/bin/pip install nvitop-exporter==1.7.2
        python -m bench gpu_exporter_peer --peer /tmp/peer/bin/nvitop-exporter [--seconds 30]

    Both beat once a second and are scraped once a second; CPU of the whole process, in turns,
    medians. They do not print the same series, so the number of series of each is printed, too.
    The bare calls are those of one beat of Fairlead, recorded once and made again by the same
    bindings with nothing around them; they are compared with Fairlead's readers alone, in this
    process. The library answers at once, so the two programs are compared, not a driver.
    """
    parser = options(measure_gpu_exporter_peer)
    parser.add_argument("--peer", required=True, help="the program nvitop-exporter")
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    with played_driver() as (folder, library, _):
        fairlead, peers = [], []
        for _ in range(args.rounds):
            with exporter(library, folder, 1000, still=True) as (pid, url):
                fairlead.append(gpu_exporter_peer_cost(pid, f"{url}/metrics", args.seconds))
            with peer(args.peer, library, folder) as (pid, url):
                peers.append(gpu_exporter_peer_cost(pid, f"{url}/metrics", args.seconds))
        own, other = (
            statistics.median(cpu for cpu, _, _ in rounds) for rounds in (fairlead, peers)
        )
        print(f"fairlead: {own:.2%} of a core, {fairlead[-1][1]:.0f} MiB, {fairlead[-1][2]} series")
        print(f"peer:     {other:.2%} of a core, {peers[-1][1]:.0f} MiB, {peers[-1][2]} series")
        print(
            f"fairlead against the peer {own / other:.2f}, for each series "
            f"{own / fairlead[-1][2] / (other / peers[-1][2]):.2f}"
        )
        os.environ |= {"STUB_NVML": str(folder), "STUB_NVML_STILL": "1"}
        beat, bare, calls = beside_the_calls(library)
        print(
            f"a beat of our readers {1000 * beat:.2f} ms of CPU, its {calls} calls alone "
            f"{1000 * bare:.2f} ms ({beat / bare:.2f})"
        )


@contextmanager
def peer(program: str, library: Path, folder: Path) -> Iterator[tuple[int, str]]:
    port = free_port()
    env = {
        **os.environ,
        "STUB_NVML": str(folder),
        "STUB_NVML_STILL": "1",
        "LD_LIBRARY_PATH": str(library.parent),
    }
    argv = [program, "--port", str(port), "--interval", "1", "--bind", "127.0.0.1"]
    process = subprocess.Popen(argv, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    try:
        wait_until("the peer answers", lambda: series_of(f"{url}/metrics") > 0, 60.0, 0.2)
        yield process.pid, url
    finally:
        process.kill()
        process.wait()


def series_of(url: str) -> int:
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return sum(not line.startswith(b"#") for line in answer.read().splitlines())
    except OSError:
        return 0


def gpu_exporter_peer_cost(pid: int, url: str, seconds: float) -> tuple[float, float, int]:
    """Part of a core, resident MiB, series; scraped once a second."""
    time.sleep(3)
    before, began = cpu_seconds(pid), time.monotonic()
    while time.monotonic() - began < seconds:
        series = series_of(url)
        time.sleep(1)
    return (cpu_seconds(pid) - before) / (time.monotonic() - began), memory(pid, "VmRSS"), series


def beside_the_calls(library: Path) -> tuple[float, float, int]:
    """CPU seconds of a beat of all cards, of its calls alone, and how many calls these are."""
    open_library(str(library))
    now = [0.0]
    readers = [
        CardReader(shown_card(card), wanted=PROFILED, monotonic=lambda: now[0])
        for card in range(CARDS)
    ]

    def beat() -> None:
        now[0] += 1.0
        for reader in readers:
            reader.fast()

    beat()
    beat()
    calls = recorded(beat)
    try:
        return spent(beat), spent(lambda: made_again(calls)), len(calls)
    finally:
        close_library()


def recorded(act: Callable[[], None]) -> list[Call]:
    """The calls of NVIDIA's bindings that `act` makes, through any reference to a function."""
    calls: list[Call] = []
    source = pynvml.__file__

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        is_inner = frame.f_back is not None and frame.f_back.f_code.co_filename == source
        if (
            event == "call"
            and code.co_filename == source
            and code.co_name.startswith("nvml")
            and not is_inner
        ):
            calls.append(
                (
                    getattr(pynvml, code.co_name),
                    tuple(frame.f_locals[name] for name in code.co_varnames[: code.co_argcount]),
                )
            )

    sys.setprofile(note)
    try:
        act()
    finally:
        sys.setprofile(None)
    return calls


def made_again(calls: list[Call]) -> None:
    for made, arguments in calls:
        with suppress(pynvml.NVMLError):  # as when it was recorded
            made(*arguments)


def spent(act: Callable[[], None]) -> float:
    """CPU seconds of one time, of many."""
    began = time.process_time()
    for _ in range(BEATS):
        act()
    return (time.process_time() - began) / BEATS


SETTLING: Final = 0.1
HANG_SECONDS: Final = 2


class Look(NamedTuple):
    at: float
    rss_mib: float
    threads: int
    descriptors: int


def measure_gpu_exporter_soak() -> None:
    """Whether the GPU exporter grows: eight cards ten times a second, pods that come and go, hangs.

        python -m bench gpu_exporter_soak [--minutes 30] [--interval 100] [--every 30]

    A library plays the driver, and a played kubelet reports other holders of the cards at each
    question. Every `--every` seconds: resident memory, threads and descriptors of the process. At
    the end, how each grew since the first tenth of the time, in which caches fill.
    """
    parser = options(measure_gpu_exporter_soak)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--interval", type=int, default=100, help="milliseconds between two beats")
    parser.add_argument(
        "--every", type=float, default=30.0, help="seconds between two looks at the process"
    )
    args = parser.parse_args()
    with (
        played_driver() as (folder, library, state),
        churning_kubelet(folder) as answers,
        exporter(library, folder, args.interval) as (pid, url),
    ):
        looks = soaked(pid, url, state, args.minutes * 60, args.every)
        print(f"the kubelet reported {next(answers)} different lists of pods")
    settled = next(look for look in looks if look.at >= SETTLING * looks[-1].at)
    last = looks[-1]
    print(
        f"from {settled.at / 60:.1f} to {last.at / 60:.1f} min: RSS "
        f"{last.rss_mib - settled.rss_mib:+.1f} MiB, "
        f"threads {last.threads - settled.threads:+d}, descriptors "
        f"{last.descriptors - settled.descriptors:+d}"
    )


def soaked(pid: int, url: str, state: StubState, seconds: float, every: float) -> list[Look]:
    """What the process holds, looked at again and again; between two looks scrapes, and one card
    hangs for a while.
    """
    began, looks = time.monotonic(), list[Look]()
    for turn in itertools.count():
        card = turn % CARDS
        asyncio.run(scraped(url, 20))
        state.say({f"hang.nvmlDeviceGetUtilizationRates.{card}": HANG_SECONDS})
        time.sleep(HANG_SECONDS)
        state.say({f"hang.nvmlDeviceGetUtilizationRates.{card}": None})
        time.sleep(max(0.0, every - HANG_SECONDS))
        look = Look(
            time.monotonic() - began,
            memory(pid, "VmRSS"),
            len(list(Path(f"/proc/{pid}/task").iterdir())),
            len(list(Path(f"/proc/{pid}/fd").iterdir())),
        )
        looks.append(look)
        print(
            (
                f"{look.at / 60:5.1f} min  {look.rss_mib:6.1f} MiB  {look.threads} threads  "
                f"{look.descriptors} descriptors"
            ),
            flush=True,
        )
        if look.at >= seconds:
            return looks
    raise AssertionError("it counts for ever")


@contextmanager
def churning_kubelet(
    folder: Path, answer: Callable[[int], bytes] | None = None
) -> Iterator[Iterator[int]]:
    """A socket in `folder` where each question finds other pods on the cards; yields a counter.

    The counter counts the questions.

    `answer`: the answer to the n-th question.
    """
    socket = folder / "pod-resources" / "kubelet.sock"
    socket.parent.mkdir()
    counted, has_ended = itertools.count(), threading.Event()

    async def listed(_request: bytes, _context: aio.ServicerContext[bytes, bytes]) -> bytes:
        return (answer or held_by)(next(counted))

    async def serve() -> None:
        server = aio.server()
        handlers = {"List": grpc.unary_unary_rpc_method_handler(listed)}
        server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler("v1.PodResourcesLister", handlers),)
        )
        server.add_insecure_port(f"unix:{socket}")
        await server.start()
        await asyncio.to_thread(has_ended.wait)
        await server.stop(None)

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    try:
        yield counted
    finally:
        has_ended.set()
        thread.join()


def held_by(turn: int) -> bytes:
    """A pod on each card, with a name that no pod had before."""
    devices = [packed((1, "nvidia.com/gpu"), (2, card_uuid(card))) for card in range(CARDS)]
    containers = [packed((1, "main"), (2, each)) for each in devices]
    return b"".join(
        packed((1, packed((1, f"pod-{turn}-{card}"), (2, "soak"), (3, each))))
        for card, each in enumerate(containers)
    )


PODS = 110


class NothingGiven:
    def read_given(self) -> tuple[GivenShare, ...]:
        return ()


def measure_pod_names() -> None:
    """From the kubelet's list of 110 pods to the names on eight cards, against the bare question.

        python -m bench pod_names [--times 300]

    110 is what a kubelet runs at most by default. Eight of the pods hold a card each, the others
    cores alone, as the kubelet lists them all. Both the question and what is made of it are in the
    figure. It is wall time: no scrape waits for it, but a name on a page is older by this time.
    """
    parser = options(measure_pod_names)
    parser.add_argument("--times", type=int, default=300)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="fairlead-bench-") as directory:
        folder = Path(directory)
        socket = folder / "pod-resources" / "kubelet.sock"
        with churning_kubelet(folder, listed):
            wait_until("the socket is there", socket.exists, 30.0, 0.05)
            asyncio.run(compared(socket, args.times))


def listed(_turn: int) -> bytes:
    return b"".join(packed((1, pod(number))) for number in range(PODS))


def pod(number: int) -> bytes:
    devices = packed((1, "nvidia.com/gpu"), (2, uuid(number))) if number < CARDS else b""
    cpus = b"".join(packed((3, core)) for core in range(4))
    containers = [
        packed((1, name)) + (packed((2, devices)) if devices and name == "main" else b"") + cpus
        for name in ("main", "side")
    ]
    return packed(
        (1, f"worker-{number}-5d8f7c9b6c-x{number:04}"), (2, f"team-{number % 7}")
    ) + b"".join(packed((3, each)) for each in containers)


async def compared(socket: Path, times: int) -> None:
    samples = [
        DeviceSample(
            "n1", card, card, uuid(card), f"00000000:{7 + card:02X}:00.0", "H200", "570", True, {}
        )
        for card in range(CARDS)
    ]
    kubelet = PodResources(socket)
    names = PodMap(kubelet, NothingGiven(), 60.0)

    async def whole() -> None:
        assert await names.ask()
        named = names.attributed(samples)
        assert all(each.processes for each in named), named

    async with aio.insecure_channel(f"unix:{socket}") as channel:
        question: aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(
            "/v1.PodResourcesLister/List"
        )

        async def bare() -> None:
            await question(b"")

        all_of_it, alone = await timed(whole, times), await timed(bare, times)
    await kubelet.close()
    p50, p99 = statistics.median(all_of_it), statistics.quantiles(all_of_it, n=100)[-1]
    print(f"{PODS} pods, {len(listed(0))} bytes: p50 {1000 * p50:.2f} ms, p99 {1000 * p99:.2f} ms")
    print(
        f"the bare question {1000 * statistics.median(alone):.2f} ms "
        f"({p50 / statistics.median(alone):.2f})"
    )


async def timed(act: Callable[[], Awaitable[None]], times: int) -> list[float]:
    found = []
    for _ in range(times):
        began = time.perf_counter()
        await act()
        found.append(time.perf_counter() - began)
    return found[times // 10 :]


BEAT_MS = 5000
LOOK_SECONDS = 0.02
NODE = "n1"
SERIES = f'fairlead_node_gpu_utilization_ratio{{node_name="{NODE}"'


def measure_value_to_series() -> None:
    """The time from a change of a card's value to the cluster exporter's page.

    Every interval is the default.

        python -m bench value_to_series [--changes 60]

    A library plays the driver; the GPU exporter (a process) asks it every 5 s, the cluster
    exporter (here, over a cluster of one node) reads its page every 5 s and makes its own when
    something is new. The changes come at any moment of these beats. Waits add up; no cleverness
    would make a beat shorter than it is.
    """
    parser = options(measure_value_to_series)
    parser.add_argument("--changes", type=int, default=60)
    args = parser.parse_args()
    with played_driver() as (folder, library, state):
        os.environ["NODE_NAME"] = NODE
        with exporter(library, folder, BEAT_MS) as (_, url):
            waits = asyncio.run(measured(url, state, args.changes))
    p50, p99 = statistics.median(waits), statistics.quantiles(waits, n=100, method="inclusive")[-1]
    print(
        f"{len(waits)} changes: p50 {p50:.1f} s, p99 {p99:.1f} s, at most "
        f"{max(waits):.1f} s; two "
        f"beats are {2 * BEAT_MS / 1000:.0f} s"
    )


async def measured(url: str, state: StubState, changes: int) -> list[float]:
    clock = WallClock()
    readings = ExporterPages([f"{url}/metrics"], clock)
    made = ClusterExporter(
        FakeCluster(cluster([gpu_node(NODE, CARDS)])), readings, clock, ClusterExporterSettings()
    )
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
            await asyncio.to_thread(
                wait_until,
                "the page has the value",
                partial(has_value, page, wanted),
                60.0,
                LOOK_SECONDS,
            )
            waits.append(time.monotonic() - began)
    finally:
        for loop in loops:
            loop.cancel()
        await asyncio.gather(*loops, return_exceptions=True)
    return waits


def has_value(page: str, percent: int) -> bool:
    try:
        with urllib.request.urlopen(page, timeout=10) as answer:
            lines = answer.read().decode().splitlines()
    except OSError:
        return False
    return any(
        line.startswith(SERIES) and abs(100 * float(line.rsplit(" ", 1)[1]) - percent) < 0.01
        for line in lines
    )
