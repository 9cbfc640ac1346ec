"""The GPU exporter beside nvitop-exporter on one library with eight cards, and beside its own bare calls.

    python3 -m venv /tmp/peer && /tmp/peer/bin/pip install nvitop-exporter==1.7.2
    .venv/bin/python -m bench.gpu_exporter_peer --peer /tmp/peer/bin/nvitop-exporter [--seconds 30]

Both beat once a second and are scraped once a second; CPU of the whole process, in turns, medians. They do
not print the same: how many series each has is told beside. The bare calls are those of one beat of ours,
recorded once and made again by the same bindings with nothing around them; against them stand our readers
alone, in this process. The library answers at once, so what is compared is ours and theirs, not a driver.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

import pynvml
from bench.gpu_exporter import CARDS, exporter, played_driver
from bench.laptop_start import cpu_seconds, memory
from tests.kube.addresses import free_port
from tests.waiting import wait_until

from fairlead.edge.nvml.cards import shown_card
from fairlead.edge.nvml.library import close_library, open_library
from fairlead.edge.nvml.readings import CardReader

BEATS = 300
PROFILED = frozenset(
    f"DCGM_FI_PROF_{name}" for name in ("GR_ENGINE_ACTIVE", "PIPE_TENSOR_ACTIVE", "DRAM_ACTIVE", "PCIE_TX_BYTES", "PCIE_RX_BYTES")
)
"""What dcgm-exporter's default counters ask of GPM."""
Call = tuple[Callable[..., Any], tuple[Any, ...]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", required=True, help="the program nvitop-exporter")
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    with played_driver() as (folder, library, _):
        ours, theirs = [], []
        for _ in range(args.rounds):
            with exporter(library, folder, 1000, still=True) as (pid, url):
                ours.append(cost(pid, f"{url}/metrics", args.seconds))
            with peer(args.peer, library, folder) as (pid, url):
                theirs.append(cost(pid, f"{url}/metrics", args.seconds))
        own, other = (statistics.median(cpu for cpu, _, _ in rounds) for rounds in (ours, theirs))
        print(f"ours:  {own:.2%} of a core, {ours[-1][1]:.0f} MiB, {ours[-1][2]} series")
        print(f"peer:  {other:.2%} of a core, {theirs[-1][1]:.0f} MiB, {theirs[-1][2]} series")
        print(f"ours against the peer {own / other:.2f}, for each series {own / ours[-1][2] / (other / theirs[-1][2]):.2f}")
        os.environ |= {"STUB_NVML": str(folder), "STUB_NVML_STILL": "1"}
        beat, bare, calls = beside_the_calls(library)
        print(f"a beat of our readers {1000 * beat:.2f} ms of CPU, its {calls} calls alone {1000 * bare:.2f} ms ({beat / bare:.2f})")


@contextmanager
def peer(program: str, library: Path, folder: Path) -> Iterator[tuple[int, str]]:
    port = free_port()
    env = {**os.environ, "STUB_NVML": str(folder), "STUB_NVML_STILL": "1", "LD_LIBRARY_PATH": str(library.parent)}
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


def cost(pid: int, url: str, seconds: float) -> tuple[float, float, int]:
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
    readers = [CardReader(shown_card(card), wanted=PROFILED, monotonic=lambda: now[0]) for card in range(CARDS)]

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
    """The calls of NVIDIA's bindings that this makes, whoever holds the function."""
    calls: list[Call] = []
    source = pynvml.__file__

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        is_inner = frame.f_back is not None and frame.f_back.f_code.co_filename == source
        if event == "call" and code.co_filename == source and code.co_name.startswith("nvml") and not is_inner:
            calls.append((getattr(pynvml, code.co_name), tuple(frame.f_locals[name] for name in code.co_varnames[: code.co_argcount])))

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


if __name__ == "__main__":
    main()
