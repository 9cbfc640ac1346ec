"""From the kubelet's list of 110 pods to the names on eight cards, against the bare question.

    .venv/bin/python -m bench.pod_names [--times 300]

110 is what a kubelet runs at most by default. Eight of the pods hold a card each, the others cores alone,
as the kubelet lists them all. Both the question and what is made of it are in the figure: wall time, for a
scrape waits for none of it, but a name on a page is so much older.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from bench.gpu_exporter import CARDS
from bench.gpu_exporter_soak import churning_kubelet
from grpc import aio
from tests.edge.kubelet.wire_bytes import packed
from tests.nvml.stub import uuid
from tests.waiting import wait_until

from fairlead.apps.pod_map import PodMap
from fairlead.edge.kubelet.pod_resources import PodResources
from fairlead.model.devices.device import DeviceSample
from fairlead.model.devices.kubelet import GivenShare

PODS = 110


class NothingGiven:
    def read_given(self) -> tuple[GivenShare, ...]:
        return ()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
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
    containers = [packed((1, name)) + (packed((2, devices)) if devices and name == "main" else b"") + cpus for name in ("main", "side")]
    return packed((1, f"worker-{number}-5d8f7c9b6c-x{number:04}"), (2, f"team-{number % 7}")) + b"".join(
        packed((3, each)) for each in containers
    )


async def compared(socket: Path, times: int) -> None:
    samples = [
        DeviceSample("n1", card, card, uuid(card), f"00000000:{7 + card:02X}:00.0", "H200", "570", True, {}) for card in range(CARDS)
    ]
    kubelet = PodResources(socket)
    names = PodMap(kubelet, NothingGiven(), 60.0)

    async def whole() -> None:
        assert await names.ask()
        told = names.attributed(samples)
        assert all(each.processes for each in told), told

    async with aio.insecure_channel(f"unix:{socket}") as channel:
        question: aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary("/v1.PodResourcesLister/List")

        async def bare() -> None:
            await question(b"")

        ours, alone = await timed(whole, times), await timed(bare, times)
    await kubelet.close()
    p50, p99 = statistics.median(ours), statistics.quantiles(ours, n=100)[-1]
    print(f"{PODS} pods, {len(listed(0))} bytes: p50 {1000 * p50:.2f} ms, p99 {1000 * p99:.2f} ms")
    print(f"the bare question {1000 * statistics.median(alone):.2f} ms ({p50 / statistics.median(alone):.2f})")


async def timed(act: Callable[[], Awaitable[None]], times: int) -> list[float]:
    found = []
    for _ in range(times):
        began = time.perf_counter()
        await act()
        found.append(time.perf_counter() - began)
    return found[times // 10 :]


if __name__ == "__main__":
    main()
