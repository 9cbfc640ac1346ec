"""The laptop's cluster: its start, its worlds, their time and memory."""

from __future__ import annotations

import argparse
import cProfile
import json
import os
import pstats
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from pathlib import Path

from bench.support.options import options
from bench.support.processes import cpu_seconds, memory
from fairlead.console.pages.endpoints import BASE
from fairlead.run.hooks.sharing_hooks import sharing_world
from fairlead.run.initial_worlds import uncollected
from fairlead_sim.objects.conditions import phase_of
from fairlead_sim.objects.resources import PODS, PYTORCH_JOBS
from fairlead_sim.scenario.file import load_scenario
from fairlead_sim.world.world import World

COMMAND = [sys.executable, "-m", "fairlead", "up", "--sign-in=false"]
PORTS = [
    word
    for name in ("", "gpu-exporter-", "cluster-exporter-", "api-")
    for word in (f"--{name}port", "0")
]
PAUSE_SECONDS = 0.05
MIB = 1024
COLUMNS = (
    "ready s",
    "ready CPU s",
    "board s",
    "board CPU s",
    "board MiB",
    "settled MiB",
    "peak MiB",
    "then CPU %",
)


def measure_laptop_start() -> None:
    """The time from `fairlead up` to the first board, and the memory that the laptop uses then.

        python -m bench laptop_start [--scenario default] [--runs 3] [--settle 10] [--kept]

    Aims: the default scenario's first board within 5 s; `large` ready within 15 s and 1.5 GiB.
    Each run is a process of its own. CPU seconds (all threads) stand beside wall seconds: on a
    busy machine only they compare. `--kept`: with a state directory, so that the world is written
    to disk, too.
    """
    parser = options(measure_laptop_start)
    parser.add_argument("--scenario", default="default")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument(
        "--settle",
        type=float,
        default=10.0,
        help=(
            "seconds after the first board until `settled MiB` is read; `then CPU %%` is what "
            "they used of one core"
        ),
    )
    parser.add_argument("--kept", action="store_true", help="with a state directory")
    parser.add_argument("--log", type=Path, help="where the laptop's stderr goes")
    args = parser.parse_args()
    rows = []
    for _ in range(args.runs):
        rows.append(measure(args))
        print(
            "   ".join(
                f"{name} {value:.1f}" for name, value in zip(COLUMNS, rows[-1], strict=True)
            ),
            flush=True,
        )
    best = [min(column) for column in zip(*rows, strict=True)]
    print(
        f"\nscenario {args.scenario}, best of {args.runs}, load {os.getloadavg()[0]:.1f} on "
        f"{os.cpu_count()} cores"
    )
    print("".join(f"{name:>14}" for name in COLUMNS))
    print("".join(f"{value:>14.1f}" for value in best))


def measure(args: argparse.Namespace) -> tuple[float, ...]:
    """One life of a laptop, as the values of `COLUMNS`."""
    with tempfile.TemporaryDirectory(prefix="fairlead-bench-") as directory:
        ready = Path(directory, "ready.json")
        command = [*COMMAND, "--scenario", args.scenario, "--ready-file", str(ready), *PORTS]
        command += ["--state-dir", directory] if args.kept else []
        environment = {**os.environ, "XDG_STATE_HOME": directory}
        with (args.log or Path(os.devnull)).open("ab") as stderr:
            started = time.perf_counter()
            process = subprocess.Popen(
                command, stdout=subprocess.DEVNULL, stderr=stderr, env=environment
            )
            try:
                while not ready.exists():
                    if process.poll() is not None:
                        raise SystemExit(
                            f"the laptop ended with status {process.returncode} before it was ready"
                        )
                    time.sleep(PAUSE_SECONDS)
                at_ready = (time.perf_counter() - started, cpu_seconds(process.pid))
                console = json.loads(ready.read_text())["console"].rstrip("/")
                with urllib.request.urlopen(f"{console}{BASE}/nodes", timeout=120) as answer:
                    assert json.load(answer)["total"], "the board is empty"
                at_board = (
                    time.perf_counter() - started,
                    cpu_seconds(process.pid),
                    memory(process.pid, "VmRSS"),
                )
                time.sleep(args.settle)
                busy = (cpu_seconds(process.pid) - at_board[1]) / max(args.settle, 0.01)
                return (
                    *at_ready,
                    *at_board,
                    memory(process.pid, "VmRSS"),
                    memory(process.pid, "VmHWM"),
                    busy * 100,
                )
            finally:
                process.send_signal(signal.SIGTERM)
                process.wait(30)


def measure_first_start() -> None:
    """From the first command to the first board: of the wheel, and of a fresh clone.

        python -m bench first_start [--runs 3] [--uvx PROGRAM]

    `uvx --from WHEEL fairlead up`, against `make up` in a new clone of this checkout's HEAD. What
    either downloads (packages, Node) is there already; environments are not. In turns. CPU seconds
    are of all programs that a command starts, the laptop included.
    """
    parser = options(measure_first_start)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--uvx", default=_uvx(), help="uv's program (default: the pinned one)")
    args = parser.parse_args()
    found: dict[str, list[tuple[float, float]]] = {"uvx fairlead up": [], "make up": []}
    with tempfile.TemporaryDirectory(prefix="fairlead-bench-") as folder:
        wheel = _wheel(Path(folder))
        env = {**os.environ, "UV_CACHE_DIR": str(Path(folder, "uv"))}
        uvx = [args.uvx, "--python", sys.executable, "--from", str(wheel), "fairlead"]
        subprocess.run([*uvx, "--version"], env=env, check=True, capture_output=True)
        for _ in range(args.runs):
            for kept in Path(folder, "uv").glob("environments-*"):
                shutil.rmtree(kept)
            found["uvx fairlead up"].append(_to_the_board([*uvx, "up"], env, Path(folder)))
            clone = Path(folder, "clone")
            copy = ["git", "clone", "--quiet", "--shared", str(ROOT), str(clone)]
            subprocess.run(copy, check=True)
            found["make up"].append(_to_the_board(["make", "-C", str(clone), "up"], env, clone))
            shutil.rmtree(clone)
    print(f"\nmedians of {args.runs}; load {os.getloadavg()[0]:.1f}")
    medians = {name: statistics.median(wall for wall, _ in rows) for name, rows in found.items()}
    for name, rows in found.items():
        cpu = statistics.median(cpu for _, cpu in rows)
        ratio = medians[name] / medians["make up"]
        print(f"{name:18}{medians[name]:>8.1f} s wall{cpu:>8.1f} CPU s{ratio:>8.2f} of make up")
    print(f"aim: {medians['uvx fairlead up']:.1f} s (<= {FIRST_START_AIM_SECONDS:.0f})")


ROOT = Path(__file__).resolve().parents[1]
FIRST_START_AIM_SECONDS = 20.0


def _uvx() -> str:
    sys.path.insert(0, str(ROOT / "tools"))
    import toolchains

    folder = toolchains.cache_home() / "toolchains"
    pinned = ".".join(map(str, toolchains.pinned_version("uv")))
    return str(folder / f"uv-{pinned}" / "packages" / "bin" / "uvx")


def _wheel(folder: Path) -> Path:
    sys.path.insert(0, str(ROOT / "tools"))
    import distributions

    made: Path = distributions.build_distribution("wheel", folder / "wheel")
    return made


def _to_the_board(command: list[str], env: dict[str, str], folder: Path) -> tuple[float, float]:
    """Wall and CPU seconds until the console's page answers."""
    ready = folder / "ready.json"
    ready.unlink(missing_ok=True)
    flags = ["--ready-file", str(ready), *PORTS]
    words = [f"ARGS={' '.join(flags)}"] if command[0] == "make" else flags
    own = {**env, "XDG_STATE_HOME": str(folder / "state")}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    process = subprocess.Popen(
        [*command, *words], env=own, stdout=subprocess.DEVNULL, start_new_session=True
    )
    try:
        while not ready.exists():
            if process.poll() is not None:
                raise SystemExit(f"{command} ended with status {process.returncode}")
            time.sleep(PAUSE_SECONDS)
        page = json.loads(ready.read_text())["console"]
        with urllib.request.urlopen(page, timeout=120) as answer:
            assert b"<html" in answer.read(), page
        wall = time.perf_counter() - started
    finally:
        os.killpg(process.pid, signal.SIGINT)
        process.wait(60)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


EPOCH = 1_767_600_000.0


def measure_large_world() -> None:
    """How long the `large` world takes to stand, and how much memory it holds. Aim: 15 s, 1.5 GiB.

        python -m bench large_world

    CPU seconds stand beside wall seconds: on a busy machine only they compare.
    """
    options(measure_large_world).parse_args()
    cpu, wall = time.process_time(), time.perf_counter()
    with uncollected():
        world = sharing_world(load_scenario("large"), 0, EPOCH)
        print(
            f"services stand: {time.process_time() - cpu:.1f} s cpu, "
            f"{time.perf_counter() - wall:.1f} s wall"
        )
        world.warm_up()
    print(
        f"jobs run too:   {time.process_time() - cpu:.1f} s cpu, "
        f"{time.perf_counter() - wall:.1f} "
        "s wall"
    )
    phases = Counter(phase_of(pod) for pod in world.cluster.scan(PODS))
    print(
        f"pods: {dict(phases)}; jobs: {len(world.cluster.list(PYTORCH_JOBS))}; writes: "
        f"{world.cluster.resource_version}"
    )
    print(f"RSS: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


DAY = 86400.0
AIM_SECONDS_PER_DAY = 30 / 7


def live(world: World, days: int) -> float:
    """Day by day, with what each cost; the CPU seconds of all."""
    began = time.process_time()
    for day in range(1, days + 1):
        timers = world.run_until(world.clock.now() + DAY)
        spent = time.process_time() - began
        rss_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        print(
            (
                f"day {day}: {spent:6.1f} s  {timers:6} timers  {world.cluster.resource_version:8} "
                f"writes so far  {rss_mib} MiB"
            ),
            flush=True,
        )
    return time.process_time() - began


def measure_simulated_week() -> None:
    """How long a simulated week of the default scenario takes, and how much memory. Aim: 30 s.

        python -m bench simulated_week [--scenario default] [--days 7] [--seed 0] [--profile]

    The world alone, as `fairlead time advance 7d` lives it, without a server around it. It works
    on one thread: CPU seconds are what an idle machine needs, and what is compared with the aim.
    """
    parser = options(measure_simulated_week)
    parser.add_argument("--scenario", default="default")
    parser.add_argument("--days", type=int, default=7)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--profile", action="store_true", help="print where the time went")
    args = parser.parse_args()
    world = sharing_world(load_scenario(args.scenario), args.seed, EPOCH)
    world.warm_up()
    profile = cProfile.Profile()
    if args.profile:
        profile.enable()
    began = time.perf_counter()
    seconds = live(world, args.days)
    wall = time.perf_counter() - began
    profile.disable()
    aim = AIM_SECONDS_PER_DAY * args.days
    verdict = "met" if seconds <= aim else "NOT met"
    print(
        f"{args.days} days of {args.scenario}: {seconds:.1f} CPU s, {wall:.1f} s wall (aim "
        f"{aim:.1f} s): {verdict}"
    )
    if args.profile:
        pstats.Stats(profile).sort_stats("tottime").print_stats(25)
