"""Does the GPU exporter grow? Eight cards ten times a second, pods that come and go, scrapes, hangs.

    .venv/bin/python -m bench.gpu_exporter_soak [--minutes 30] [--interval 100] [--every 30]

A library plays the driver, and a kubelet of ours tells each time who holds the cards: always other pods.
Every so many seconds: resident memory, threads and descriptors of the process. At the end, how each grew
since the first tenth of the time, in which caches fill.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import grpc
from bench.gpu_exporter import CARDS, exporter, played_driver, scraped
from bench.laptop_start import memory
from grpc import aio
from tests.edge.kubelet.wire_bytes import packed
from tests.nvml.stub import StubState
from tests.nvml.stub import uuid as card_uuid

SETTLING: Final = 0.1
HANG_SECONDS: Final = 2


class Look(NamedTuple):
    at: float
    rss_mib: float
    threads: int
    descriptors: int


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--interval", type=int, default=100, help="milliseconds between two beats")
    parser.add_argument("--every", type=float, default=30.0, help="seconds between two looks at the process")
    args = parser.parse_args()
    with (
        played_driver() as (folder, library, state),
        churning_kubelet(folder) as answers,
        exporter(library, folder, args.interval) as (pid, url),
    ):
        looks = soaked(pid, url, state, args.minutes * 60, args.every)
        print(f"the kubelet told {next(answers)} different lists of pods")
    settled = next(look for look in looks if look.at >= SETTLING * looks[-1].at)
    last = looks[-1]
    print(
        f"from {settled.at / 60:.1f} to {last.at / 60:.1f} min: RSS {last.rss_mib - settled.rss_mib:+.1f} MiB, "
        f"threads {last.threads - settled.threads:+d}, descriptors {last.descriptors - settled.descriptors:+d}"
    )


def soaked(pid: int, url: str, state: StubState, seconds: float, every: float) -> list[Look]:
    """What the process holds, looked at again and again; between two looks scrapes, and one card hangs for a
    while."""
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
        print(f"{look.at / 60:5.1f} min  {look.rss_mib:6.1f} MiB  {look.threads} threads  {look.descriptors} descriptors", flush=True)
        if look.at >= seconds:
            return looks
    raise AssertionError("it counts for ever")


@contextmanager
def churning_kubelet(folder: Path, answer: Callable[[int], bytes] | None = None) -> Iterator[Iterator[int]]:
    """A socket under `folder` at which each question finds other pods on the cards; what it yields counts
    them.

    `answer`: what is told the n-th time.
    """
    socket = folder / "pod-resources" / "kubelet.sock"
    socket.parent.mkdir()
    counted, has_ended = itertools.count(), threading.Event()

    async def listed(_request: bytes, _context: aio.ServicerContext[bytes, bytes]) -> bytes:
        return (answer or held_by)(next(counted))

    async def serve() -> None:
        server = aio.server()
        handlers = {"List": grpc.unary_unary_rpc_method_handler(listed)}
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("v1.PodResourcesLister", handlers),))
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
    """A pod on each card whose name nobody had before."""
    devices = [packed((1, "nvidia.com/gpu"), (2, card_uuid(card))) for card in range(CARDS)]
    containers = [packed((1, "main"), (2, each)) for each in devices]
    return b"".join(packed((1, packed((1, f"pod-{turn}-{card}"), (2, "soak"), (3, each)))) for card, each in enumerate(containers))


if __name__ == "__main__":
    main()
