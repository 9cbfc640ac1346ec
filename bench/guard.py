"""The memory guard on the stub driver: what its calls cost, and the compute time that it grants."""

from __future__ import annotations

import os
import shlex
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.native.driver import MIB, Machine

from bench.support.options import options
from build_native import Built, build_guard, build_program, build_stub

PROGRAM: Final = Path(__file__).parent / "native" / "guarded.c"
LIMIT: Final = 1 << 40
CONTEXT: Final = 8 * MIB
EIGHT: Final = 8
EIGHT_PAIRS: Final = 20_000
BATCH: Final = 1000
STEADY: Final = 200
"""Calls of a work before its first round."""
LOOK_EVERY: Final = 0.26
"""Seconds: cuMemGetInfo looks for processes that died four times a second at most."""
MICROSECOND: Final = 1000.0
MILLISECOND: Final = 1e6
LINE: Final = "{:<46}{:>11}{:>11}{:>11}{:>11}   {}"


@dataclass
class Sides:
    """Nanoseconds of one call in each round, with the guard and without."""

    guarded: list[float] = field(default_factory=list[float])
    plain: list[float] = field(default_factory=list[float])

    @property
    def added(self) -> tuple[float, float]:
        """By the fastest rounds, and by the medians."""
        medians = statistics.median(self.guarded) - statistics.median(self.plain)
        return min(self.guarded) - min(self.plain), medians

    def show(self, title: str, aim: str) -> None:
        figures = (min(self.guarded), min(self.plain), *self.added)
        print(LINE.format(title, *map(_time, figures), aim), flush=True)


def _time(nanoseconds: float) -> str:
    """
    >>> [_time(each) for each in (3.54, 105.8, 2449.7, 128_400, 3_400_000)]
    ['3.5 ns', '106 ns', '2.45 µs', '128 µs', '3.40 ms']
    """
    size = abs(nanoseconds)
    if size < MICROSECOND:
        return f"{nanoseconds:.1f} ns" if size < 100 else f"{nanoseconds:.0f} ns"
    if size < MILLISECOND:
        text = nanoseconds / MICROSECOND
        return f"{text:.2f} µs" if size < 100 * MICROSECOND else f"{text:.0f} µs"
    return f"{nanoseconds / MILLISECOND:.2f} ms"


class Served:
    """A program with a context that does what it is asked."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.process = subprocess.Popen(
            [str(_program()), "serve"],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, work: str, count: int) -> None:
        assert self.process.stdin
        self.process.stdin.write(f"{work} {count}\n")
        self.process.stdin.flush()

    def answer(self) -> tuple[int, int]:
        """Nanoseconds of the clock and of the processor, of all calls together."""
        assert self.process.stdout
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"the program of the bench ended with {self.process.wait()}")
        wall, cpu = map(int, line.split())
        return wall, cpu

    def run(self, work: str, count: int) -> tuple[int, int]:
        self.ask(work, count)
        return self.answer()

    def end(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait()


def _program() -> Path:
    return build_program(PROGRAM)


def _environment(container: Machine, *, has_guard: bool, **more: str) -> dict[str, str]:
    """Of a container, and nothing else: the stub looks for its knobs in it at each call."""
    preload = {"LD_PRELOAD": str(build_guard(Built()))} if has_guard else {}
    return {
        **preload,
        "LD_LIBRARY_PATH": str(build_stub()),
        "FAIRLEAD_GUARD_LIMITS": str(container.limits),
        "FAIRLEAD_STUB_MEMORY": str(2 * LIMIT),
        **more,
    }


@contextmanager
def _container(core: int = 0) -> Iterator[Machine]:
    with tempfile.TemporaryDirectory() as folder:
        yield Machine(Path(folder), limit=LIMIT, context=CONTEXT, core=core)


@contextmanager
def _served(
    container: Machine, count: int, *, has_guard: bool, **more: str
) -> Iterator[list[Served]]:
    environment = _environment(container, has_guard=has_guard, **more)
    with ExitStack() as stack:
        programs = []
        for _ in range(count):
            programs.append(Served(environment))
            stack.callback(programs[-1].end)
        yield programs


def _alternating(work: str, count: int, rounds: int, core: int = 0, **more: str) -> Sides:
    """One program on each side, in turns."""
    found = Sides()
    with (
        _container(core) as container,
        _served(container, 1, has_guard=True, **more) as guarded,
        _served(container, 1, has_guard=False, **more) as plain,
    ):
        for program in (*guarded, *plain):
            program.run(work, STEADY)
        for _ in range(rounds):
            found.guarded.append(guarded[0].run(work, count)[0] / count)
            found.plain.append(plain[0].run(work, count)[0] / count)
    return found


def _pairs(rounds: int) -> None:
    _alternating("pairs", 10_000, 10 * rounds).show("allocate and free, one process", "+0.3 µs")
    wall, cpu = Sides(), Sides()
    with (
        _container() as container,
        _served(container, EIGHT, has_guard=True) as guarded,
        _served(container, EIGHT, has_guard=False) as plain,
    ):
        for _ in range(rounds):
            for programs, walls, cpus in (
                (guarded, wall.guarded, cpu.guarded),
                (plain, wall.plain, cpu.plain),
            ):
                begun = time.perf_counter_ns()
                for program in programs:
                    program.ask("pairs", EIGHT_PAIRS)
                used = sum(program.answer()[1] for program in programs)
                walls.append((time.perf_counter_ns() - begun) / (EIGHT * EIGHT_PAIRS))
                cpus.append(used / (EIGHT * EIGHT_PAIRS))
    wall.show("the same, eight on one region: of the machine", "+1 µs")
    cpu.show("the same: processor time of each", "+1 µs")


def _launches(rounds: int) -> None:
    _alternating("launches", 10_000, 10 * rounds).show("launch, no core limit", "+10 ns")
    limited = _alternating("launches", 10_000, 10 * rounds, 50)
    limited.show("launch of an empty kernel, core limit 50 %", "+50 ns")
    for microseconds, core in ((1, 50), (10, 99)):
        kernel = str(microseconds * 1000)
        found = _alternating("launches", BATCH, 20 * rounds, core, FAIRLEAD_STUB_KERNEL_NS=kernel)
        found.show(f"1000 launches of {microseconds} µs at once, core limit {core} %", "+50 ns")


def _memory(rounds: int) -> None:
    _alternating("questions", 10_000, 10 * rounds).show("cuMemGetInfo", "≤ 2 µs")
    with (
        _container() as container,
        _served(container, 1, has_guard=True) as guarded,
        _served(container, 1, has_guard=False) as plain,
    ):
        for live in (1000, 10_000, 100_000, 1_000_000):
            found = Sides()
            for program in (*guarded, *plain):
                program.run("live", live)
            for _ in range(20 * rounds):
                found.guarded.append(guarded[0].run("frees", BATCH)[0] / BATCH)
                found.plain.append(plain[0].run("frees", BATCH)[0] / BATCH)
            found.show(f"free at random among {live:,} blocks", "O(1)")


@contextmanager
def _crowd(container: Machine, count: int) -> Iterator[None]:
    """`count` other processes with a context in the region."""
    process = subprocess.Popen(
        [str(_program()), "crowd", str(count)],
        env=_environment(container, has_guard=True),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin
    assert process.stdout
    try:
        assert process.stdout.readline() == "crowd\n"
        yield
    finally:
        process.stdin.close()
        process.wait()


def _start(rounds: int) -> None:
    for others in (0, 63, 511):
        found = Sides()
        with _container() as container, _crowd(container, others):
            for _ in range(10 * rounds):
                for is_guarded, took in ((True, found.guarded), (False, found.plain)):
                    environment = _environment(container, has_guard=is_guarded)
                    argv = [str(_program()), "start"]
                    done = subprocess.run(argv, env=environment, capture_output=True, check=True)
                    took.append(int(done.stdout))
            found.show(f"cuInit and a context, process {others + 1} of the region", "+1 ms")
            _looks(container, rounds).show("    cuMemGetInfo there, when it looks for the dead", "")


def _looks(container: Machine, rounds: int) -> Sides:
    found = Sides()
    with (
        _served(container, 1, has_guard=True) as guarded,
        _served(container, 1, has_guard=False) as plain,
    ):
        for _ in range(rounds):
            time.sleep(LOOK_EVERY)
            found.guarded.append(guarded[0].run("questions", 1)[0])
            found.plain.append(plain[0].run("questions", 1)[0])
    return found


def _programs(rounds: int) -> None:
    """By LD_PRELOAD; and by /etc/ld.so.preload, where this user may make a namespace of mounts."""
    spawn = [str(_program()), "spawn", str(20 * rounds)]
    library = str(build_guard(Built()))
    listed = shutil.which("ls") or "/bin/ls"
    argv = [*spawn, library, listed, "/"]
    _spawned(argv).show("ls /, the guard in LD_PRELOAD", "≤ 100 µs")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "ld.so.preload").write_text(library + "\n", encoding="utf-8")
        shutil.copy("/etc/ld.so.cache", folder)
        found = Sides()
        bind = f"mount --bind {shlex.quote(folder)} /etc"
        for _ in range(rounds):
            try:
                with_file = _spawned(
                    ["unshare", "-rm", "sh", "-c", f"{bind} && {shlex.join(argv)}"]
                )
            except (OSError, subprocess.CalledProcessError):
                print("    /etc/ld.so.preload: no namespace of mounts for this user")
                return
            found.guarded += with_file.plain
            found.plain += _spawned(argv).plain
    found.show("ls /, the guard in /etc/ld.so.preload", "≤ 100 µs")


def _spawned(argv: list[str]) -> Sides:
    environment = {"LD_LIBRARY_PATH": str(build_stub()), "PATH": os.environ["PATH"]}
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=True)
    columns = zip(*(map(float, line.split()) for line in done.stdout.splitlines()), strict=True)
    return Sides(*map(list, columns))


def _shares(rounds: int) -> None:
    """The tenant of the tests launches for a second of GPU time that its container asked for."""
    for how in ("eager", "graph"):
        for percent in (25, 50, 75):
            found = []
            for _ in range(rounds):
                with tempfile.TemporaryDirectory() as folder:
                    kernel = {"FAIRLEAD_STUB_KERNEL_NS": "500000"}
                    container = Machine(Path(folder), core=percent, knobs=kernel)
                    lines = container.run("dlsym", "share", how, 1000)
                found.append(int(lines[-1].removeprefix("share ")) / 10)
            error = max(abs(share - percent) for share in found)
            shares = (
                f"{min(found):.1f} to {max(found):.1f} %, median {statistics.median(found):.1f}"
            )
            print(f"core limit {percent} %, {how:<6} {shares}, error ≤ {error:.1f} (aim ≤ 5)")


PARTS: Final[Mapping[str, Callable[[int], None]]] = {
    "pairs": _pairs,
    "launches": _launches,
    "memory": _memory,
    "start": _start,
    "programs": _programs,
    "shares": _shares,
}


def measure_guard() -> None:
    """What the memory guard adds to the calls of a program, on the stub of NVIDIA's driver.

        python -m bench guard [PART …] [--rounds 10]

    `pairs`: cuMemAlloc and cuMemFree, in one process, and in eight that share a region.
    `launches`: cuLaunchKernel, without and with a share of compute time. `memory`: cuMemGetInfo,
    and frees among many blocks. `start`: cuInit and the first context, beside other processes.
    `programs`: the start and end of a program without CUDA. `shares`: the compute time that a
    container gets. All of them without PART.

    A program with the guard and one without run a round each in turns. The first two columns are
    the fastest rounds of each; what the guard adds is their difference, and that of the medians.
    The stub allocates nothing and answers in nanoseconds, so each difference is the guard's own,
    with the questions that it asks the driver.
    """
    parser = options(measure_guard)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--rounds", type=int, default=10)
    chosen = parser.parse_args()
    wrong = [part for part in chosen.parts if part not in PARTS]
    if wrong or chosen.rounds < 1:
        parser.error(f"PART is one of {', '.join(PARTS)}, and --rounds is 1 or more")
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; rounds: {chosen.rounds}")
    print(LINE.format("", "guard", "without", "added", "by medians", "aim"))
    for part in chosen.parts or PARTS:
        PARTS[part](chosen.rounds)
    print(f"load at the end {os.getloadavg()[0]:.1f}")
